package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"market/internal/app"
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

func migrate(ctx context.Context) error {
	d, err := config.LoadDatabase(os.Environ())
	if err != nil {
		return err
	}
	if url := d.URL.Reveal(); url != "" {
		return postgres.Migrate(ctx, url)
	}
	embedded, err := app.StartEmbedded(ctx, d)
	if err != nil {
		return err
	}
	return errors.Join(postgres.Migrate(ctx, embedded.URL()), embedded.Stop(context.WithoutCancel(ctx)))
}
