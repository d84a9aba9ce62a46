package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// admin runs `market admin …` with the token in the environment and returns what it prints.
func admin(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append([]string{"admin"}, args...))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// adminAPI is an admin API that answers what is asked for, by "METHOD URI body", and has a conflict with everything else.
func adminAPI(t *testing.T, conflict string, answers map[string]string) *adminClient {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer, known := answers[r.Method+" "+r.URL.RequestURI()+" "+string(body)]
		if !known {
			w.WriteHeader(http.StatusConflict)
			answer = `{"code":"conflict","detail":"` + conflict + `"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	t.Setenv("MARKET_ADMIN_TOKEN", "the-token-of-the-test")
	t.Setenv("MARKET_PUBLIC_URL", server.URL)
	return &adminClient{base: server.URL, http: server.Client()}
}

// A said is what a command has to print of JSON, without spaces.
type said struct {
	args []string
	want string
}

// prints runs commands of market admin, which print JSON where nobody looks.
func prints(t *testing.T, commands map[string]said) {
	t.Helper()
	for what, c := range commands {
		out, err := admin(t, c.args...)
		var compact bytes.Buffer
		if err != nil || json.Compact(&compact, []byte(out)) != nil || !strings.Contains(compact.String(), c.want) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
}

// fails runs commands of market admin that print nothing and end in an error that says what is wanted.
func fails(t *testing.T, commands map[string]said) {
	t.Helper()
	for what, c := range commands {
		if out, err := admin(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%s: %v, %q; want an error with %q", what, err, out, c.want)
		}
	}
}

// shelf answers like the admin API: two pages of services, and one that can be suspended.
func shelf(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer the-token-of-the-test":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code":"unauthorized","detail":"this needs the admin token"}`)
		case r.URL.Path == "/api/v1/admin/services" && r.URL.Query().Get("cursor") == "":
			_, _ = io.WriteString(w, `{"items":[{"slug":"a","state":"listed","state_since":"2026-01-02T03:04:05.000000Z","state_by":"admin token","state_reason":"created",
				"endpoints":2}],"next_cursor":"next"}`)
		case r.URL.Path == "/api/v1/admin/services":
			_, _ = fmt.Fprintf(w, `{"items":[{"slug":"b","state":"suspended","state_reason":"fraud\u001b[31m","state":%q}],"next_cursor":""}`, r.URL.Query().Get("state"))
		case r.URL.Path == "/api/v1/admin/services/a/suspend" && string(body) == `{"reason":"why not"}`:
			_, _ = io.WriteString(w, `{"slug":"a","state":"suspended","state_reason":"why not","endpoints":[{},{}]}`)
		case r.URL.Path == "/api/v1/admin/services/large/relist":
			_, _ = w.Write(bytes.Repeat([]byte(" "), adminBytesMax+1))
		case r.URL.Path == "/api/v1/admin/services/moved/relist":
			http.Redirect(w, r, "/api/v1/admin/services/a/suspend", http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":"conflict","detail":"the service is on the shelf already"}`)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAdmin_ListsAllPagesAndMovesServices(t *testing.T) {
	server := shelf(t)
	t.Setenv("MARKET_ADMIN_TOKEN", "the-token-of-the-test")
	t.Setenv("MARKET_PUBLIC_URL", server.URL)
	out, err := admin(t, "services", "--state", "suspended")
	var printed struct{ Items []standing }
	if err != nil || json.Unmarshal([]byte(out), &printed) != nil || len(printed.Items) != 2 || printed.Items[1].State != "suspended" || printed.Items[0].Endpoints != 2 {
		t.Errorf("%v, %s", err, out)
	}
	out, err = admin(t, "services", "suspend", "a", "--reason", "why not")
	if err != nil || json.Unmarshal([]byte(out), &printed) != nil || len(printed.Items) != 1 || printed.Items[0].StateReason != "why not" || printed.Items[0].Endpoints != 2 {
		t.Errorf("%v, %s", err, out)
	}
	fails(t, map[string]said{
		"what the server refuses":    {[]string{"services", "relist", "a", "--reason", "x"}, "the service is on the shelf already (conflict)"},
		"no reason":                  {[]string{"services", "suspend", "a"}, "reason"},
		"another address":            {[]string{"services", "--url", "http://market.example"}, "https, or to this machine"},
		"an address that is none":    {[]string{"services", "--url", "market.example"}, "no http or https address"},
		"an address with a password": {[]string{"services", "--url", "https://me:pw@market.example"}, "no http or https address"},
		"more than is read":          {[]string{"services", "relist", "large", "--reason", "x"}, "the answer is too large"},
		"a redirect":                 {[]string{"services", "relist", "moved", "--reason", "x"}, "307"},
	})
	t.Setenv("MARKET_ADMIN_TOKEN", "another")
	if _, err := admin(t, "services"); err == nil || !strings.Contains(err.Error(), "unauthorized") {
		t.Errorf("another token: %v", err)
	}
	t.Setenv("MARKET_ADMIN_TOKEN", "")
	if _, err := admin(t, "services"); err == nil || !strings.Contains(err.Error(), "MARKET_ADMIN_TOKEN") {
		t.Errorf("no token: %v", err)
	}
}

func TestPrintServices_ATableShowsNothingThatMovesTheCursor(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printServices(&out, []standing{
		{Slug: "weather", State: "suspended", StateSince: "2026-01-02T03:04:05.000000Z", StateBy: "admin token", StateReason: "fraud\x1b[2J\u202e", Endpoints: 1},
		{Slug: "b", State: "listed", StateReason: "created", Broken: []string{"GET /x: it has no price"}},
	}, true)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "SERVICE  STATE") || strings.ContainsAny(out.String(), "\x1b\u202e") ||
		!strings.Contains(lines[1], "2026-01-02 03:04 UTC  admin token  1 ") || !strings.Contains(lines[2], "created; broken: GET /x: it has no price") {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	if err := printServices(&out, nil, true); err != nil || out.String() != "no services\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}
