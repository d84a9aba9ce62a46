package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"market/internal/catalog"
)

// shownMax is how much of an answer's body, in bytes, a provider is shown to see what answered.
const shownMax = 200

// A Finding is how one probe of a listing went, in words for its owner. What the service sent is cut and escaped.
type Finding struct {
	Passed   bool
	Request  string
	Expected string
	Received string
}

// Check sends a service's liveness probe once and says what came back. It changes no verdict.
func (c *Client) Check(ctx context.Context, s *catalog.Service) Finding {
	f := Finding{
		Request:  s.Probe.Method + " " + s.BaseURL + s.Probe.Path,
		Expected: "a status of " + s.Probe.Statuses.String(),
	}
	response, is := c.probe(ctx, s)
	switch {
	case isTrouble(is.reason):
		f.Received = "nothing is known, because the trouble is ours: " + is.detail
		return f
	case is.reason != "":
		f.Received = "no answer: " + is.detail
		return f
	}
	defer func() { _ = response.Body.Close() }()
	f.Passed = s.Probe.Statuses.Has(response.StatusCode)
	f.Received = shown(response, maskOf(s))
	return f
}

// shown describes an answer: its status, its type and where it redirects to, and how its body begins, without what was sent for the service alone.
func shown(response *http.Response, m mask) string {
	parts := []string{fmt.Sprintf("status %d", response.StatusCode)}
	for _, name := range []string{"Content-Type", "Location"} {
		if value := response.Header.Get(name); value != "" {
			parts = append(parts, fmt.Sprintf("%s %s", name, escaped(string(m.bytes([]byte(value))))))
		}
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, shownMax+1)) // what came in time is what there is to show
	whole := len(body) <= shownMax
	if body = m.bytes(body); !whole {
		body = m.cut(body)
	}
	if len(body) > 0 {
		parts = append(parts, "body "+escaped(string(body)))
	}
	return strings.Join(parts, ", ")
}

// escaped puts a text from outside in quotes, cut, and in characters that change nothing around them.
func escaped(text string) string {
	if len(text) <= shownMax {
		return fmt.Sprintf("%+q", text)
	}
	end := shownMax
	for end > shownMax-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%+q and more", text[:end])
}
