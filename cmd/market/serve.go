package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"market/internal/app"
	"market/internal/config"
)

func newServeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the server, configured by the environment",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return serve(c.Context()) },
	}
	c.Long = "Run the server until it is told to stop, then let calls under way end.\n\nEnvironment:\n\n" + environment()
	return c
}

// environment is the table of the variables, from the code that reads them.
func environment() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, v := range config.Describe() {
		given := v.Default
		if given == "" {
			given = "-"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", v.Name, given, v.Meaning)
	}
	_ = w.Flush() // into memory
	return b.String()
}

func serve(ctx context.Context) error {
	c, err := config.Load(os.Environ())
	if err != nil {
		return fmt.Errorf("the configuration is not usable:\n%w", err)
	}
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000000Z07:00"
	level, err := zerolog.ParseLevel(string(c.LogLevel))
	if err != nil {
		return fmt.Errorf("log level: %w", err)
	}
	log := zerolog.New(os.Stderr).Level(level).With().Timestamp().Logger()
	a, err := app.Start(ctx, c, log)
	if err != nil {
		return err
	}
	log.Info().Str("url", a.URL()).Str("listening", a.DoorURL()).Str("ops", a.OpsURL()).Msg("serving")
	select {
	case <-ctx.Done():
		log.Info().Msg("stopping: calls under way may end")
		return a.Stop(context.WithoutCancel(ctx))
	case failed := <-a.Failed():
		log.Error().Err(failed).Msg("stopping")
		_ = a.Stop(context.WithoutCancel(ctx)) // the first failure is the one to tell
		return failed
	}
}
