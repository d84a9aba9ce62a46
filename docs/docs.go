// Package docs holds the documents for users, as far as the server shows parts of them, and no logic.
package docs

import _ "embed"

// Outcomes says, in Markdown, what every outcome and every reason means: each reason in one line, "- `reason`: meaning".
//
//go:embed outcomes.md
var Outcomes string
