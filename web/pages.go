package web

import "embed"

// Templates holds the pages, html/template files without logic. Each page defines "title" and "main", which layout.html puts into its frame.
//
//go:embed templates/*.html
var Templates embed.FS

// Style is the one style sheet of all pages.
//
//go:embed static/style.css
var Style []byte

// Icon is the picture in a browser's tab, an SVG.
//
//go:embed static/favicon.svg
var Icon []byte

// SignIn is the one script of all pages: it asks the wallet of a browser to sign. Only the page that signs in runs it.
//
//go:embed static/signin.js
var SignIn []byte
