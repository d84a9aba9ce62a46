package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/payment"
	"market/internal/refusal"
)

func (s *Server) answerTo(t *testing.T, path string, header http.Header, err error) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header = header
	answer := httptest.NewRecorder()
	s.writeError(err, echo.New().NewContext(r, answer))
	return answer
}

// Whatever goes wrong with a payment in our hands, nobody is told that nothing was charged before that is known.
func TestWriteError_SaysNothingOfMoneyThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	paid := http.Header{http.CanonicalHeaderKey(payment.HeaderSignature): {"x"}}
	trouble := errors.New("a panic after the claim")
	for name, tt := range map[string]struct {
		path   string
		header http.Header
		err    error
		want   any
	}{
		"trouble with a payment":    {"/s/weather/v1", paid, trouble, "pending"},
		"trouble with a v1 payment": {"/s/weather/v1", http.Header{http.CanonicalHeaderKey(payment.HeaderV1Payment): {"x"}}, trouble, "pending"},
		"trouble without one":       {"/s/weather/v1", http.Header{}, trouble, false},
		"trouble elsewhere":         {"/api/v1/services", paid, trouble, false},
		"a refusal with a payment":  {"/s/weather/v1", paid, refusal.New(call.NotFound, "x"), false},
	} {
		var got problem
		if err := json.Unmarshal(s.answerTo(t, tt.path, tt.header, tt.err).Body.Bytes(), &got); err != nil || got.Charged != tt.want {
			t.Errorf("%s: charged %v, %v, want %v", name, got.Charged, err, tt.want)
		}
	}
}

func TestProblemPage_SpeaksOfMoneyOnlyOnTheWayOfACall(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	s.catalog = catalog.New(nil, 0)
	person := http.Header{"Accept": {"text/html"}, "User-Agent": {browser}}
	paying := person.Clone()
	paying.Set(payment.HeaderSignature, "x")
	const free, unknown = "Nothing was charged.", "Whether your payment was taken is not known yet"
	for name, tt := range map[string]struct {
		path    string
		header  http.Header
		err     error
		has, no string
	}{
		"a service that is not there": {"/s/nobody/v1", person, refusal.New(call.NotFound, "x"), free, unknown},
		"a trial":                     {"/try/nobody/v1", person, refusal.New(call.NotFound, "x"), free, unknown},
		"trouble with a payment":      {"/s/weather/v1", paying, errors.New("x"), unknown, free},
		"no page":                     {"/nothing", person, refusal.New(call.NotFound, "x"), "There is nothing here", "charged"},
		"no such call":                {"/calls/x", person, refusal.New(call.NotFound, "x"), "Nothing is known by this", "charged"},
		"trouble with a page":         {"/calls/x", person, errors.New("x"), "Something went wrong", "charged"},
	} {
		page := s.answerTo(t, tt.path, tt.header, tt.err).Body.String()
		if !strings.Contains(page, tt.has) || strings.Contains(page, tt.no) {
			t.Errorf("%s: want %q and not %q in\n%s", name, tt.has, tt.no, page)
		}
	}
}

// Nobody takes our JSON for a page, so it is as readable, and as long, as what is in it.
func TestWriteJSON_IsNotEscapedForPages(t *testing.T) {
	t.Parallel()
	answer := newTestServer().answerTo(t, "/api/v1/services", http.Header{}, refusal.New(call.InvalidRequest, "a < b & c > d"))
	h, body := answer.Header(), answer.Body.String()
	if !strings.Contains(body, `"a < b & c > d"`) || strings.HasSuffix(body, "\n") || !json.Valid([]byte(body)) {
		t.Errorf("%s", body)
	}
	if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasSuffix(h.Get("Content-Type"), "json") {
		t.Errorf("a browser may take it for a page: %v", h)
	}
}
