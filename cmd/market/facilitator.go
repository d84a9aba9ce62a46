package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"market/internal/app"
	"market/internal/config"
)

func newFacilitatorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "facilitator",
		Short: "Run an x402 facilitator for other people's servers, configured by the environment",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return runFacilitator(c.Context()) },
	}
	c.Long = `Run an x402 facilitator until it is told to stop: POST /verify, POST /settle and GET /supported at its root, for x402 version 1 and 2.

It pays the gas of other people's payments with the gas key and holds no other key: no money passes through it. Who may use it, and
for which recipients, is in the file that MARKET_FACILITATOR_KEYS names:

  {"keys":[{"name":"shop","sha256":"<SHA-256 of the token, in hex>","recipients":["0x…"],"per_minute":600}]}

Clients send the token itself, as "Authorization: Bearer <token>". "recipients":["*"] lets a key settle to anybody.
docs/facilitator.md has the whole story, with an example.

Environment:

` + environment(config.DescribeDesk())
	return c
}

func runFacilitator(ctx context.Context) error {
	c, err := config.LoadDesk(os.Environ())
	if err != nil {
		return fmt.Errorf("the configuration is not usable:\n%w", err)
	}
	log, err := newLog(c.LogLevel)
	if err != nil {
		return err
	}
	d, err := app.StartDesk(ctx, c, log)
	if err != nil {
		return err
	}
	log.Info().Str("listening", d.DoorURL()).Str("ops", d.OpsURL()).Int("keys", len(c.Keys)).Msg("settling for others")
	return untilStopped(ctx, log, d)
}
