package server

import (
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/strikes"
)

// A trace or a JSON document is read by its lines. What else moves text around does not come through.
func TestEvidenceOnPage_KeepsTheLinesOfWhatTheServiceSaid(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	st := strangersStrike()
	st.Evidence[0] = strikes.Evidence{Status: 500, Said: call.Said{Snippet: "first\n  second\u202e\n\tthird", Bytes: 20, SHA256: make([]byte, 32)}}
	page := render(t, adminStrikeTemplate, casePage{frame: s.frame(), Slug: "evil", Strikes: []strikeOnPage{strikeOnPageOf(st)}})
	if want := "<pre><code>first\n  second \n third</code></pre>"; !strings.Contains(page, want) {
		t.Errorf("there is no %q in\n%s", want, page)
	}
}

func TestAnswerWords_ReadWithEverySpan(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]strikes.Evidence{
		"Status 500 in under 1 ms":      {Status: 500, Latency: time.Microsecond},
		"Status 500 in 12 ms":           {Status: 500, Latency: 12 * time.Millisecond},
		"No whole answer in under 1 ms": {Latency: time.Microsecond},
		"No whole answer in 10 s":       {Latency: 10 * time.Second},
	} {
		if got := answerWords(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
