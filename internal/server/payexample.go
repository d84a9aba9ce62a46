package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"market/internal/catalog"
)

// An example is a request with the listing's own example in it, as far as it has one.
type example struct {
	method string
	path   string // with the query
	body   string // JSON in ASCII; empty for a method that takes none
	filled bool   // else the caller has to fill in something
}

// bodyToFillIn stands for a body of which the listing has no example, or only a long one.
const bodyToFillIn = `{"your":"input"}`

func exampleOf(e *catalog.Endpoint) example {
	if catalog.TakesBody(e.Method) {
		body, ok := asciiJSON(e.InputExample)
		if !ok || len(body) > exampleBytesMax {
			return example{e.Method, e.Path, bodyToFillIn, false}
		}
		return example{e.Method, e.Path, body, !strings.Contains(e.Path, "{")}
	}
	given := map[string]any{}
	if len(e.InputExample) > 0 && json.Unmarshal(e.InputExample, &given) != nil {
		given = nil
	}
	x := example{method: e.Method, filled: len(e.InputExample) > 0 || len(e.InputSchema) == 0}
	segments := strings.Split(e.Path, "/")
	for i, segment := range segments {
		name, isParam := strings.CutPrefix(segment, "{")
		if !isParam {
			continue
		}
		name = strings.TrimSuffix(name, "}")
		value, _ := given[name].(string)
		delete(given, name)
		if value == "" || value == "." || value == ".." || strings.ContainsAny(value, `/\`) {
			x.filled = false
			continue
		}
		segments[i] = url.PathEscape(value)
	}
	x.path = strings.Join(segments, "/")
	query := url.Values{}
	for name, value := range given {
		if list, ok := value.([]any); ok {
			for _, one := range list {
				query.Add(name, fmt.Sprint(one))
			}
			continue
		}
		query.Add(name, fmt.Sprint(value))
	}
	switch encoded := query.Encode(); {
	case encoded == "":
	case len(encoded) > exampleBytesMax:
		x.filled = false
	default:
		x.path += "?" + encoded
	}
	return x
}

// flags are those of curl and of market call.
func (x example) flags() string {
	var b strings.Builder
	switch x.method {
	case http.MethodGet, http.MethodPost: // POST is what a body makes of a request
	default:
		b.WriteString(" -X " + x.method)
	}
	if x.body != "" {
		b.WriteString(" -d " + shellQuote(x.body))
	}
	return b.String()
}

// options are the second argument of fetch, where there is one.
func (x example) options() string {
	switch {
	case x.body != "":
		return fmt.Sprintf(", {\n  method: %q,\n  headers: { \"Content-Type\": \"application/json\" },\n  body: JSON.stringify(%s),\n}", x.method, x.body)
	case x.method != http.MethodGet:
		return fmt.Sprintf(", { method: %q }", x.method)
	}
	return ""
}
