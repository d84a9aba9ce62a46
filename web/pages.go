package web

import "embed"

// Templates holds the pages, html/template files without logic.
//
//go:embed templates/*.html
var Templates embed.FS
