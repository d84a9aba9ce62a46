// Package docs holds the documents for users, as far as the server shows them, and no logic.
package docs

import "embed"

// Outcomes says, in Markdown, what every outcome and every reason means: each reason in one line, "- `reason`: meaning".
//
//go:embed outcomes.md
var Outcomes string

// Public holds what callers and providers read, in Markdown.
//
//go:embed api.md outcomes.md providers.md receipts.md
var Public embed.FS
