package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"market/migrations"
)

// SchemaFingerprint names the schema that Migrate makes, so that a migrated template can be kept for it.
func SchemaFingerprint() (string, error) { return fingerprint(migrations.FS) }

// fingerprint hashes our migrations, names and bytes, and those of the job queue. A length goes before each part, so that moving a byte
// from one to the next changes the hash.
func fingerprint(ours fs.FS) (string, error) {
	hash := sha256.New()
	add := func(part string) { fmt.Fprintf(hash, "%d:%s", len(part), part) }
	names, err := fs.Glob(ours, "*.sql")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		text, err := fs.ReadFile(ours, name)
		if err != nil {
			return "", fmt.Errorf("migration %s: %w", name, err)
		}
		add(name)
		add(string(text))
	}
	queue, err := queueMigrations()
	if err != nil {
		return "", err
	}
	for _, version := range queue {
		add(version.SQLUp)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// queueMigrations are those of the job queue, in order.
func queueMigrations() ([]rivermigrate.Migration, error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return nil, fmt.Errorf("job queue migrations: %w", err)
	}
	return migrator.AllVersions(), nil
}
