package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"market/internal/config"
	"market/internal/postgres"
)

func newMigrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of MARKET_DATABASE_URL, or of the embedded database, up to date",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return migrate(c.Context()) },
	}
}

func migrate(ctx context.Context) (err error) {
	d, err := config.LoadDatabase(os.Environ())
	if err != nil {
		return err
	}
	url := d.URL.Reveal()
	if url == "" {
		dir := d.DataDir
		if dir == "" {
			dir = postgres.DefaultDataDir()
		}
		embedded, err := postgres.StartEmbedded(ctx, postgres.Embedded{Dir: dir, BinDir: d.BinDir})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, embedded.Stop(context.WithoutCancel(ctx))) }()
		url = embedded.URL()
	}
	return postgres.Migrate(ctx, url)
}
