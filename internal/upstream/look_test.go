package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

func TestClient_Look_UsesTheDeclaredProbe(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "HEAD" && r.RequestURI == "/base/healthz" && len(r.Header["Market-Call"]) == 0 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	for name, tt := range map[string]struct {
		statuses string
		url      string
		want     call.Reason
	}{
		"a status that means yes":     {"401", server.URL + "/base", ""},
		"another status":              {"200-399", server.URL + "/base", call.NotLive},
		"nobody there":                {"200-599", "http://127.0.0.1:1", call.UpstreamUnreachable},
		"an answer that is malformed": {"200-599", accept(t, says("nonsense\r\n\r\n")), call.UpstreamBadResponse},
	} {
		s := serviceAt(t, tt.url, nil)
		statuses, err := catalog.ParseStatuses(tt.statuses)
		if err != nil {
			t.Fatal(err)
		}
		s.Probe.Method, s.Probe.Statuses = "HEAD", statuses
		if got := development().look(t.Context(), s); got.reason != tt.want || (got.detail == "") != (tt.want == "") {
			t.Errorf("%s: %q (%s), want %q", name, got.reason, got.detail, tt.want)
		}
	}
	s := serviceAt(t, server.URL, nil)
	s.Broken = "its probe is malformed"
	if got := development().look(t.Context(), s); got.reason != call.LocalError {
		t.Errorf("a broken listing: %q, want %q", got.reason, call.LocalError)
	}
}

// B129: a probe by POST carries what its listing says, and one that the service turns down says what was sent and what was expected.
func TestClient_Look_SendsTheDeclaredInput(t *testing.T) {
	t.Parallel()
	type seen struct{ method, uri, body, kind, length string }
	got := make(chan seen, 1)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, string(body), r.Header.Get("Content-Type"), r.Header.Get("Content-Length")}
		w.WriteHeader(http.StatusMethodNotAllowed)
	})
	for name, tt := range map[string]struct {
		method, body string
		want         seen
	}{
		"GET":                {"GET", "", seen{"GET", "/healthz", "", "", ""}},
		"OPTIONS":            {"OPTIONS", "", seen{"OPTIONS", "/healthz", "", "", ""}},
		"POST":               {"POST", `{"city":"Lima"}`, seen{"POST", "/healthz", `{"city":"Lima"}`, "application/json", "15"}},
		"POST without input": {"POST", "", seen{"POST", "/healthz", "", "", "0"}},
	} {
		s := serviceAt(t, server.URL, nil)
		s.Probe.Method, s.Probe.Body = tt.method, []byte(tt.body)
		is := development().look(t.Context(), s)
		if saw := <-got; saw != tt.want {
			t.Errorf("%s: the service saw %+v, want %+v", name, saw, tt.want)
		}
		if want := "the service's liveness probe " + tt.method + " /healthz was answered with status 405; its listing expects 200-299"; is.reason != call.NotLive || is.detail != want {
			t.Errorf("%s: %q (%s), want %q (%s)", name, is.reason, is.detail, call.NotLive, want)
		}
		if row, _ := call.RowOf(is.reason); row.Outcome != call.Refused {
			t.Errorf("%s: a probe ends in %q, which may be a strike", name, row.Outcome)
		}
	}
}

func TestClient_Look_WithoutAnAnswerSaysWhatWasSentAndWhoseTroubleItIs(t *testing.T) {
	t.Parallel()
	s := serviceAt(t, "http://127.0.0.1:1", nil)
	if is, want := development().look(t.Context(), s), "the service's liveness probe GET /healthz brought no answer: the service refused the connection"; is.detail != want {
		t.Errorf("detail = %q, want %q", is.detail, want)
	}
	_, resolver := startDNS(t, always(2))
	if is := New(Options{Resolver: resolver}).look(t.Context(), serviceAt(t, publicURL, nil)); is.reason != call.EgressDown || strings.Contains(is.detail, "probe") {
		t.Errorf("%q (%s), want %q in words about us", is.reason, is.detail, call.EgressDown)
	}
}

// B100: a probe follows no redirect either.
func TestClient_Look_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the probe went elsewhere") })
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	if is := development().look(t.Context(), serviceAt(t, server.URL, nil)); is.reason != call.NotLive {
		t.Errorf("reason = %q (%s), want %q", is.reason, is.detail, call.NotLive)
	}
}

// B135: whoever lists a service learns what was sent, what was expected and what came back.
func TestClient_Check_SaysWhatCameBack(t *testing.T) {
	t.Parallel()
	answer := func(status int, header map[string]string, body string) string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			for name, value := range header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}).URL
	}
	long := strings.Repeat("é", 200)
	for name, tt := range map[string]struct {
		url    string
		passed bool
		want   string
	}{
		"alive": {answer(204, nil, ""), true, `status 204`},
		"a page where an API should be": {answer(404, map[string]string{"Content-Type": "text/html"}, "<html>\n<b>none"), false,
			`status 404, Content-Type "text/html", body "<html>\n<b>none"`},
		"a redirect": {answer(302, map[string]string{"Location": "http://169.254.169.254/x"}, ""), false,
			`status 302, Location "http://169.254.169.254/x"`},
		"a long answer, cut at a letter": {answer(500, nil, "a"+long), false, `status 500, body "a` + strings.Repeat(`\u00e9`, 99) + `" and more`},
		"an answer that plays tricks":    {answer(200, nil, "\x1b[2J\u202egnp\x00\xff"), true, `status 200, body "\x1b[2J\u202egnp\x00\xff"`},
		"an answer that stops": {accept(t, func(c net.Conn) {
			readHead(c)
			_, _ = io.WriteString(c, "HTTP/1.1 400 No\r\nContent-Length: 100\r\n\r\nhalf")
			readHead(c)
		}), false, `status 400, body "half"`},
		"nobody":    {"http://127.0.0.1:1", false, "no answer: the service refused the connection"},
		"no HTTP":   {accept(t, says("nonsense\r\n\r\n")), false, "no answer: the service's answer is malformed or cut short"},
		"no answer": {accept(t, func(c net.Conn) { readHead(c); readHead(c) }), false, "no answer: the service did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serviceAt(t, tt.url, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			got := development().Check(ctx, s)
			want := Finding{tt.passed, "GET " + tt.url + "/healthz", "a status of 200-299", tt.want}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestClient_Check_OurTroubleIsCalledOurs(t *testing.T) {
	t.Parallel()
	_, resolver := startDNS(t, always(2))
	got := New(Options{Resolver: resolver}).Check(t.Context(), serviceAt(t, publicURL, nil))
	if want := "nothing is known, because the trouble is ours: the service's name could not be looked up from here"; got.Passed || got.Received != want {
		t.Errorf("received = %q, want %q", got.Received, want)
	}
}
