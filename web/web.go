// Package web holds the documents that the server gives out, and no logic.
package web

import _ "embed"

// OpenAPI describes every public route: an OpenAPI 3.1 document in JSON. It names ExampleURL where a server names its own public URL.
//
//go:embed openapi.json
var OpenAPI []byte

// ExampleURL is the one server of OpenAPI.
const ExampleURL = "https://market.example"
