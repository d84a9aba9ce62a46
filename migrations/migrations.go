// Package migrations holds the schema, one numbered goose file a step, embedded in the program. Files are never edited once deployed;
// postgres.Migrate runs them.
package migrations

import "embed"

// FS holds the numbered SQL files.
//
//go:embed *.sql
var FS embed.FS
