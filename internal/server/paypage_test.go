package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"github.com/shopspring/decimal"

	"market/internal/catalog"
)

const browser = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"

// hostile is a listing of somebody who wants to run something on the machine of whoever reads it.
func hostile(method, path string) catalog.Target {
	script := `</script><script>alert(1)</script>" onload="alert(1)`
	input := `{"q":"'; touch pwned; '","$(touch pwned)":"` + "`touch pwned`" + `","id":"'><img src=x onerror=alert(1)>"}`
	return catalog.Target{
		Service: &catalog.Service{Slug: "evil", Name: script + "\u202e"},
		Endpoint: &catalog.Endpoint{Method: method, Path: path, Description: script, MIMEType: "text/html", InputExample: json.RawMessage(input),
			OutputExample: json.RawMessage(`{"a":"</code><script>alert(1)</script>\u202e"}`), TrialCallsPerDay: 1},
	}
}

func ask(t *testing.T, target catalog.Target, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/s/evil/v1?x='onfocus=alert(1)%20autofocus='&of-the-request=1", nil)
	r.Header = header
	answer := httptest.NewRecorder()
	if err := newTestServer().writeChallenge(echo.New().NewContext(r, answer), target, testChallenge(t)); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestPayPage_SaysThatAStreamIsNotKept(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		target := hostile(http.MethodGet, "/v1")
		target.Endpoint.Stream = stream
		page := ask(t, target, http.Header{"Accept": {"text/html"}, "User-Agent": {browser}}).Body.String()
		if strings.Contains(page, "is not kept") != stream {
			t.Errorf("stream %v: the page is\n%s", stream, page)
		}
	}
}

// B145: what a link or a provider says is shown, or not, and does nothing.
func TestPayPage_ShowsAListingAndRunsNothing(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		answer := ask(t, hostile(method, "/v1/{id}"), http.Header{"Accept": {"text/html,*/*;q=0.8"}, "User-Agent": {browser}, "Referer": {"of-the-request"}})
		page := answer.Body.String()
		for _, bad := range []string{"<script", "<img", `" onload="`, "onfocus", "of-the-request", "\u202e", "javascript:"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page holds %q:\n%s", method, bad, page)
			}
		}
		policy := answer.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src") {
			t.Errorf("%s: its policy is %q", method, policy)
		}
		for _, good := range []string{"$0.002", "2000 base units of USDC", "base-sepolia (eip155:84532)", "market call", "curl -gi", "@x402/fetch", "https://shop.example/try/evil/v1/{id}"} {
			if !strings.Contains(page, good) {
				t.Errorf("%s: the page does not hold %q:\n%s", method, good, page)
			}
		}
	}
}

// Only a person who looks gets a page; status and headers are those of everybody else.
func TestPayPage_IsForBrowsersOnly(t *testing.T) {
	t.Parallel()
	target := hostile(http.MethodGet, "/v1")
	plainHeader := ask(t, target, http.Header{}).Header()
	for name, tt := range map[string]struct {
		accept, agent string
		page          bool
	}{
		"a browser":                   {"text/html,application/xhtml+xml,*/*;q=0.8", browser, true},
		"a script in a browser":       {"*/*", browser, false},
		"a program that takes a page": {"text/html", "curl/8", false},
		"a program that says nothing": {"", "", false},
		"a program that wants JSON":   {"application/json", browser, false},
	} {
		answer := ask(t, target, http.Header{"Accept": {tt.accept}, "User-Agent": {tt.agent}})
		h := answer.Header()
		if got := strings.HasPrefix(h.Get("Content-Type"), "text/html"); got != tt.page || answer.Code != http.StatusPaymentRequired {
			t.Errorf("%s: %d, %s", name, answer.Code, h.Get("Content-Type"))
		}
		for header := range plainHeader {
			if header != "Content-Type" && !cmp.Equal(h.Values(header), plainHeader.Values(header)) {
				t.Errorf("%s: %s is %q, for others %q", name, header, h.Values(header), plainHeader.Values(header))
			}
		}
	}
}

// The official client refuses a price above $1 unless its owner says otherwise, which its error does not explain to a visitor.
func TestPayPage_WarnsOfAPriceThatTheClientRefuses(t *testing.T) {
	t.Parallel()
	for usd, warns := range map[string]bool{"1": false, "1.01": true} {
		target := hostile(http.MethodGet, "/v1")
		target.Endpoint.Prices = []catalog.Price{{Revision: 1, USD: decimal.RequireFromString(usd)}}
		page := ask(t, target, http.Header{"Accept": {"text/html"}, "User-Agent": {browser}}).Body.String()
		if got := strings.Contains(page, "spendControls"); got != warns {
			t.Errorf("$%s: the page warns: %v", usd, got)
		}
	}
}

// What a person copies from the page into a shell asks for the price, whatever the provider wrote.
func TestPayPage_ItsCommandsAreOneHarmlessCommand(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodHead} {
		target := hostile(method, "/v1")
		page := newTestServer().payPage(target, testChallenge(t))
		for name, command := range map[string]string{"curl": page.Curl, "market": page.Market} {
			shell := exec.CommandContext(t.Context(), "sh", "-c", `curl() { printf '%s\n' "$@"; }; market() { printf '%s\n' "$@"; }; `+command+`; ls`)
			shell.Dir = t.TempDir()
			out, err := shell.CombinedOutput()
			if err != nil {
				t.Fatalf("%s, %s: %v %s", method, command, err, out)
			}
			if !strings.Contains(string(out), "https://shop.example/s/evil/v1") || strings.Contains(string(out), "\npwned\n") {
				t.Errorf("%s with %s runs as\n%s\n%s", method, name, command, out)
			}
		}
	}
}

func TestExampleOf_FillsInWhatTheListingSays(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for name, tt := range map[string]struct {
		endpoint catalog.Endpoint
		want     example
	}{
		"a body": {catalog.Endpoint{Method: "POST", Path: "/a", InputExample: raw(`{"city": "Z\u00fcrich ü 🙂"}`)},
			example{"POST", "/a", `{"city":"Z\u00fcrich \u00fc \ud83d\ude42"}`, true}},
		"a body, and a path to fill in": {catalog.Endpoint{Method: "PUT", Path: "/a/{id}", InputExample: raw(`{"n":1}`)}, example{"PUT", "/a/{id}", `{"n":1}`, false}},
		"no example of a body":          {catalog.Endpoint{Method: "POST", Path: "/a"}, example{"POST", "/a", bodyToFillIn, false}},
		"a long example of a body":      {catalog.Endpoint{Method: "POST", Path: "/a", InputExample: raw(`"` + strings.Repeat("x", exampleBytesMax) + `"`)}, example{"POST", "/a", bodyToFillIn, false}},
		"path and query":                {catalog.Endpoint{Method: "GET", Path: "/a/{id}", InputExample: raw(`{"id":"l/ma","q":"a b","r":["1","2"]}`)}, example{"GET", "/a/{id}?q=a+b&r=1&r=2", "", false}},
		"path and query, escaped":       {catalog.Endpoint{Method: "GET", Path: "/a/{id}", InputExample: raw(`{"id":"l ma?","q":"'&"}`)}, example{"GET", "/a/l%20ma%3F?q=%27%26", "", true}},
		"a path that leads elsewhere":   {catalog.Endpoint{Method: "GET", Path: "/a/{id}", InputExample: raw(`{"id":".."}`)}, example{"GET", "/a/{id}", "", false}},
		"nothing to say":                {catalog.Endpoint{Method: "DELETE", Path: "/a"}, example{"DELETE", "/a", "", true}},
		"parameters that nobody shows":  {catalog.Endpoint{Method: "GET", Path: "/a", InputSchema: raw(`{}`)}, example{"GET", "/a", "", false}},
	} {
		if got := exampleOf(&tt.endpoint); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
