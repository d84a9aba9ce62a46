package upstream

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

func TestClient_Ask_SendsOnlyListedHeaders(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	r := requestTo(serviceAt(t, server.URL, nil))
	r.Header = http.Header{
		"Accept":          {"text/html", "second value"},
		"Accept-Language": {"de"},
		"Content-Type":    {"text/plain"},
	}
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "Cookie", "X-Payment", "Payment-Signature", "Payment-Required", "Sign-In-With-X", "X-Api-Key",
		"X-Market-Payer", "X_Market_Payer", "X_MARKET_PAYER", "Market-Call", "Market_Call", "Market-Outcome", "Idempotency-Key", "Idempotency_Key",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-Ip", "Via", "Origin", "Referer", "User-Agent",
		"Keep-Alive", "Te", "Trailer", "Upgrade", "Proxy-Connection", "Expect", "Range", "If-None-Match", "If-Modified-Since", "accept-language",
	} {
		r.Header[name] = []string{"stolen"}
	}
	r.Header["Connection"] = []string{"", "Market-Call, Idempotency-Key, Accept"}
	if result := development().Ask(t.Context(), r); result.Reason != call.OK {
		t.Fatalf("reason = %q (%v)", result.Reason, result.Err)
	}
	header := <-got
	want := map[string]string{
		"Accept": "text/html", "Accept-Language": "de", "Content-Type": "text/plain", "User-Agent": userAgent,
		"Market-Call": r.CallID.String(), "Idempotency-Key": r.CallID.String(),
	}
	for name, value := range want {
		if !slices.Equal(header[name], []string{value}) {
			t.Errorf("%s = %q, want %q once", name, header[name], value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if _, listed := want[name]; !listed {
			t.Errorf("the service also got %s: %q", name, header[name])
		}
	}
}

func TestClient_Ask_ReturnsOnlyListedHeaders(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"Content-Type": "application/json", "Content-Language": "de", "Etag": `"1"`, "Last-Modified": "Mon, 02 Jan 2006 15:04:05 GMT",
		"Content-Disposition": "attachment",
	}
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range want {
			w.Header().Set(name, value)
		}
		for _, name := range []string{
			"PAYMENT-REQUIRED", "PAYMENT-RESPONSE", "X-PAYMENT-RESPONSE", "X-Payment", "Extension-Responses", "Settlement-Overrides",
			"Market-Call", "Market-Outcome", "Market_Outcome", "Set-Cookie", "Strict-Transport-Security", "Cache-Control", "Expires", "Location",
			"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Content-Security-Policy", "Clear-Site-Data", "Refresh", "Link",
			"Alt-Svc", "Server", "Via", "Retry-After", "WWW-Authenticate", "Content-Location",
		} {
			w.Header().Set(name, "forged")
		}
	})
	got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, nil)))
	if got.Reason != call.OK {
		t.Fatalf("reason = %q (%v)", got.Reason, got.Err)
	}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s = %q, want %q", name, got.Header.Get(name), value)
		}
	}
	if len(got.Header) != len(want) {
		t.Errorf("header = %v, want only %v", got.Header, want)
	}
}

func TestPass_DropsValuesThatAreNotPlain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ value, want string }{
		"plain":                  {"text/plain; charset=utf-8", "text/plain; charset=utf-8"},
		"spaces around":          {" a ", "a"},
		"empty":                  {"", ""},
		"a line break":           {"a\r\nSet-Cookie: x", ""},
		"U+0000":                 {"a\x00", ""},
		"letters outside ASCII":  {"é", ""},
		"as long as allowed":     {strings.Repeat("a", headerValueMax), strings.Repeat("a", headerValueMax)},
		"longer than is allowed": {strings.Repeat("a", headerValueMax+1), ""},
	} {
		got := pass(http.Header{"Content-Type": {tt.value}}, toCaller).Get("Content-Type")
		if got != tt.want {
			t.Errorf("%s: passed %q, want %q", name, got, tt.want)
		}
	}
}

func TestRequestHeader_SaysThatACheckedBodyIsJSON(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		schema, body, given, want string
	}{
		"a checked body without a type": {`{}`, "{}", "", "application/json"},
		"a checked body with a type":    {`{}`, "{}", "text/json", "text/json"},
		"no body":                       {`{}`, "", "", ""},
		"a body that nobody checked":    {"", "{}", "", ""},
	} {
		r := requestTo(serviceAt(t, "http://127.0.0.1", func(e *catalog.Endpoint) { e.Method, e.InputSchema = "POST", []byte(tt.schema) }))
		r.Header, r.Body = http.Header{}, []byte(tt.body)
		if tt.given != "" {
			r.Header.Set("Content-Type", tt.given)
		}
		if got := requestHeader(r, time.Now()).Get("Content-Type"); got != tt.want {
			t.Errorf("%s: Content-Type = %q, want %q", name, got, tt.want)
		}
	}
}
