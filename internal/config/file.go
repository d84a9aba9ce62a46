package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"market/internal/plan"
)

// fileBytesMax is far above what a real file of networks has.
const fileBytesMax = 1 << 20

// readFiles reads the files. The facilitators refer to the networks, so they come second.
func (p *problems) readFiles(c *Config) {
	p.readPlans(c)
	if c.NetworksFile == "" {
		p.wrong("MARKET_NETWORKS")
		return
	}
	networks, errs := readNetworks(c.NetworksFile)
	for _, err := range errs {
		p.fileLine("MARKET_NETWORKS", err)
	}
	c.Networks = networks
	if c.FacilitatorsFile == "" {
		c.Facilitators = []Facilitator{localFor(networks)}
		return
	}
	facilitators, errs := readFacilitators(c.FacilitatorsFile, networks, c.Dev)
	for _, err := range errs {
		p.fileLine("MARKET_FACILITATORS", err)
	}
	c.Facilitators = facilitators
}

func (p *problems) readPlans(c *Config) {
	if c.PlansFile == "" {
		c.Plans = plan.BuiltIn(c.FeeBPS, c.Retention)
		return
	}
	plans, errs := readPlans(c.PlansFile)
	for _, err := range errs {
		p.fileLine("MARKET_PLANS", err)
	}
	c.Plans = plans
}

// readJSON decodes one JSON value: no unknown member, nothing after it, no more than fileBytesMax.
func readJSON(path string, into any) error {
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		var failed *os.PathError
		if errors.As(err, &failed) {
			return failed.Err // the path is on the line already
		}
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, fileBytesMax+1))
	if err != nil {
		return err
	}
	if len(text) > fileBytesMax {
		return fmt.Errorf("more than %d bytes", fileBytesMax)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}
