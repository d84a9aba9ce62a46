package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"market/internal/app/apptest"
)

// underWay sends a request whose route is found before what is done then, and its body after it.
func underWay(t *testing.T, target string, then func()) apptest.Answer {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", u.Path, u.Host)
	in := bufio.NewReader(conn)
	// The server says it when the body is read for the first time: the route is found by then.
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = in.ReadString('\n')
	then()
	_, _ = io.WriteString(conn, "{}")
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return apptest.Answer{Status: response.StatusCode, Header: response.Header, Body: body}
}

// A provider that changes its key may take the old one away: what is asked after that is asked with the new one, however long it was under way.
func TestAsOfNow_ACallIsAskedWithWhatIsListedWhenItIsAsked(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	k := newKeeper(t)
	target, _ := k.list(t, w, "keeper", map[string]any{"X-Api-Key": "the first key"})
	target = strings.Replace(target, "/s/", "/try/", 1)
	var secret any
	a := underWay(t, target, func() {
		if status, answer := w.Admin(t, http.MethodPut, "/api/v1/services/keeper/headers", map[string]any{"X-Api-Key": "the second key"}); status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
		_, made := w.Admin(t, http.MethodPost, "/api/v1/services/keeper/secret", map[string]any{"after_seconds": 0})
		secret = made["value"]
	})
	for _, path := range []string{"/work", "/healthz"} {
		if got := k.shown(path, "X-Api-Key"); a.Status != http.StatusOK || got != "the second key" || k.shown(path, "Market-Secret") != secret {
			t.Errorf("%s: %d %s, and the service was shown %q", path, a.Status, a.Body, got)
		}
	}
}

// The lease of a call covers the timeout that its endpoint had when the call came.
func TestAsOfNow_ATimeoutGrowsForLaterCallsAlone(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "slow", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() },
		map[string]any{"trial_calls_per_day": 5, "timeout_ms": 1000, "input_schema": map[string]any{"type": "object"}, "input_example": map[string]any{}})
	a := underWay(t, strings.Replace(s.URL, "/s/", "/try/", 1), func() {
		if tag, err := w.DB.Exec(t.Context(), `UPDATE endpoints SET timeout_ms = 60000`); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%v, %v", tag, err)
		}
		apptest.Eventually(t, "the new timeout is listed", func() bool {
			answer := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/slow"}, "")
			return strings.Contains(string(answer.Body), `"timeout_ms":60000`)
		})
	})
	if a.Status != http.StatusGatewayTimeout {
		t.Errorf("%d %s, want the timeout of before", a.Status, a.Body)
	}
}
