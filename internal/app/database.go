package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/config"
	"market/internal/postgres"
)

const migrateTime = 10 * time.Minute

// openDatabase connects to the configured database, or starts the private one, and brings its schema up to date.
func (p *process) openDatabase(ctx context.Context, d config.Database, dev bool) (url string, err error) {
	url = d.URL.Reveal()
	if url == "" {
		if url, err = p.startEmbedded(ctx, d); err != nil {
			return "", err
		}
	}
	if p.db, err = postgres.Open(ctx, url); err != nil {
		return "", err
	}
	p.closers = append(p.closers, func(context.Context) error { p.db.Close(); return nil })
	if err := migrate(ctx, p.db, url); err != nil {
		return "", err
	}
	shift, err := postgres.ShiftedClock(ctx, p.db)
	if err != nil {
		return "", err
	}
	if shift != 0 && !dev {
		return "", fmt.Errorf("the database's market clock is shifted by %s: that is for tests, and not for other people's money", shift)
	}
	return url, nil
}

func migrate(ctx context.Context, db postgres.DB, url string) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTime)
	defer cancel()
	if migrated, err := postgres.Migrated(ctx, db); err != nil || migrated {
		return err
	}
	return postgres.Migrate(ctx, url)
}

// openBeats opens the connection of the heartbeats. They have one of their own: traffic that has all others for three seconds would take this process for dead,
// and close its networks with it.
func (a *App) openBeats(ctx context.Context, url string) (err error) {
	if a.beats, err = postgres.Open(ctx, url, func(c *pgxpool.Config) { c.MaxConns, c.MinConns, c.MinIdleConns = 1, 0, 0 }); err != nil {
		return err
	}
	a.closers = append(a.closers, func(context.Context) error { a.beats.Close(); return nil })
	return nil
}

func (p *process) startEmbedded(ctx context.Context, d config.Database) (string, error) {
	embedded, err := StartEmbedded(ctx, d)
	if err != nil {
		return "", err
	}
	p.closers = append(p.closers, embedded.Stop)
	go func() { // ends with the server, which Stop ends
		<-embedded.Done()
		select {
		case p.failed <- errors.New("the embedded database ended"):
		default: // somebody is being told already
		}
	}()
	p.log.Info().Int("postgres", embedded.Major()).Msg("embedded database started")
	return embedded.URL(), nil
}

// StartEmbedded starts the private database of a configuration that names no other. The caller stops it.
func StartEmbedded(ctx context.Context, d config.Database) (*postgres.Server, error) {
	dir := d.DataDir
	if dir == "" {
		dir = postgres.DefaultDataDir()
	}
	return postgres.StartEmbedded(ctx, postgres.Embedded{Dir: filepath.Join(dir, "postgres"), BinDir: d.BinDir})
}
