package server

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"market/web"
)

// openAPI serves GET /openapi.json. It changes with the program only, so caches may keep it a while.
func (s *Server) openAPI(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "public, max-age=300")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	return c.Blob(http.StatusOK, typeJSON, openAPIAt(s.publicURL))
}

// openAPIAt is the document with a public URL as its server. Examples keep their own URLs, which are longer strings.
func openAPIAt(publicURL string) []byte {
	return bytes.Replace(web.OpenAPI, quoted(web.ExampleURL), quoted(publicURL), 1)
}

func quoted(s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic("server: encode a string: " + err.Error()) // none can fail
	}
	return text
}
