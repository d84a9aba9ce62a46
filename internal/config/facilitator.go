package config

import (
	"fmt"
	"regexp"
)

// A Facilitator verifies and settles payments. The only kind so far is our own engine.
type Facilitator struct {
	Name     string
	Kind     string   // "local"
	Networks []string // ids
	Proof    string   // "receipt": what shows that a settlement happened
}

const (
	kindLocal       = "local"
	proofReceipt    = "receipt"
	facilitatorsMax = 32
)

type facilitatorsFile struct {
	Facilitators []facilitatorEntry `json:"facilitators"`
}

type facilitatorEntry struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Networks []string `json:"networks"`
	Proof    string   `json:"proof"`
}

// localFor is what runs without a file: our own engine for everything.
func localFor(networks []Network) Facilitator {
	f := Facilitator{Name: "local", Kind: kindLocal, Proof: proofReceipt}
	for _, n := range networks {
		f.Networks = append(f.Networks, n.ID)
	}
	return f
}

var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// readFacilitators checks the file against the networks that are known. Where those could not be read, their own error is the one to
// mend first.
func readFacilitators(path string, networks []Network) ([]Facilitator, []error) {
	var file facilitatorsFile
	if err := readJSON(path, &file); err != nil {
		return nil, []error{err}
	}
	if n := len(file.Facilitators); n < 1 || n > facilitatorsMax {
		return nil, []error{fmt.Errorf("facilitators: got %d, expected 1 to %d", n, facilitatorsMax)}
	}
	known := map[string]bool{}
	for _, n := range networks {
		known[n.ID] = true
	}
	r := report{}
	var facilitators []Facilitator
	names, covered := map[string]bool{}, map[string]bool{}
	for i, e := range file.Facilitators {
		r.at = fmt.Sprintf("facilitators[%d]", i)
		r.check("name", nameForm.MatchString(e.Name), e.Name, "lower-case letters, digits and dashes")
		r.check("name", !names[e.Name], e.Name, "a name that is not taken")
		r.check("kind", e.Kind == kindLocal, e.Kind, "local, the only kind so far")
		r.check("proof", e.Proof == proofReceipt, e.Proof, "receipt")
		r.check("networks", len(e.Networks) > 0, len(e.Networks), "at least one")
		for j, id := range e.Networks {
			r.check(fmt.Sprintf("networks[%d]", j), len(known) == 0 || known[id], id, "the id of a network in MARKET_NETWORKS")
			covered[id] = true
		}
		names[e.Name] = true
		facilitators = append(facilitators, Facilitator(e))
	}
	for _, n := range networks {
		if !covered[n.ID] {
			r.errs = append(r.errs, fmt.Errorf("no facilitator for network %s", n.ID))
		}
	}
	return facilitators, r.errs
}
