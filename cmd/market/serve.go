package main

import (
	"context"
	"fmt"
	stdlog "log"
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
	c.Long = "Run the server until it is told to stop, then let calls under way end.\n\nEnvironment:\n\n" + environment(config.Describe())
	return c
}

// environment is a table of variables, from the code that reads them.
func environment(variables []config.Variable) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, v := range variables {
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
	log, err := newLog(c.LogLevel)
	if err != nil {
		return err
	}
	a, err := app.Start(ctx, c, log)
	if err != nil {
		return err
	}
	log.Info().Str("url", a.URL()).Str("listening", a.DoorURL()).Str("ops", a.OpsURL()).Msg("serving")
	return untilStopped(ctx, log, a)
}

// newLog returns the log of the program, which is that of the libraries in it, too.
func newLog(least config.LogLevel) (zerolog.Logger, error) {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000000Z07:00"
	level, err := zerolog.ParseLevel(string(least))
	if err != nil {
		return zerolog.Logger{}, fmt.Errorf("log level: %w", err)
	}
	log := zerolog.New(os.Stderr).Level(level).With().Timestamp().Logger()
	stdlog.SetFlags(0)
	stdlog.SetOutput(libraryLog{log})
	return log, nil
}

// A program runs until it is stopped, or until a part of it fails.
type program interface {
	Failed() <-chan error
	Stop(ctx context.Context) error
}

func untilStopped(ctx context.Context, log zerolog.Logger, p program) error {
	select {
	case <-ctx.Done():
		log.Info().Msg("stopping: calls under way may end")
		return p.Stop(context.WithoutCancel(ctx))
	case failed := <-p.Failed():
		log.Error().Err(failed).Msg("stopping")
		_ = p.Stop(context.WithoutCancel(ctx)) // the first failure is the one to tell
		return failed
	}
}
