package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

func TestClient_Ask_ClassifiesEveryAnswer(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","required":["a"]}`
	long := strings.Repeat("é", 4<<10)
	tests := map[string]struct {
		change     func(*catalog.Endpoint)
		header     map[string]string
		status     int
		body       string
		want       call.Reason
		wantBody   string
		wantAnswer string
	}{
		"200":                                   {nil, nil, 200, "hello", call.OK, "hello", ""},
		"201":                                   {nil, nil, 201, "", call.OK, "", ""},
		"204":                                   {nil, nil, 204, "", call.OK, "", ""},
		"a body as large as allowed":            {nil, nil, 200, strings.Repeat("a", 1024), call.OK, strings.Repeat("a", 1024), ""},
		"a body one byte larger":                {nil, nil, 200, strings.Repeat("a", 1025), call.UpstreamTooLarge, "", ""},
		"404 that the listing serves":           {func(e *catalog.Endpoint) { e.ServedStatuses = []int{404} }, nil, 404, "none", call.OK, "none", ""},
		"404 that it does not":                  {nil, nil, 404, "none", call.RejectedByService, "", "none"},
		"400 with JSON":                         {nil, nil, 400, `{"error":"bad city"}`, call.RejectedByService, "", `{"error":"bad city"}`},
		"400 with a long text, cut at a letter": {nil, nil, 400, "a" + long, call.RejectedByService, "", "a" + long[:4094]},
		"400 with bytes":                        {nil, nil, 400, "\xff\xfe", call.RejectedByService, "", ""},
		"400 with control characters":           {nil, nil, 400, "a\x1b[31m", call.RejectedByService, "", ""},
		"403":                                   {nil, nil, 403, "", call.RejectedByService, "", ""},
		"401":                                   {nil, nil, 401, "who are you", call.UpstreamAuth, "", ""},
		"407":                                   {nil, nil, 407, "", call.UpstreamAuth, "", ""},
		"402 with a challenge of its own":       {nil, map[string]string{"PAYMENT-REQUIRED": "e30="}, 402, "{}", call.UpstreamPaymentRequired, "", ""},
		"429":                                   {nil, nil, 429, "", call.UpstreamThrottled, "", ""},
		"500":                                   {nil, nil, 500, "oops", call.Upstream5xx, "", ""},
		"503":                                   {nil, map[string]string{"Retry-After": "5"}, 503, "", call.Upstream5xx, "", ""},
		"304":                                   {nil, nil, 304, "", call.UpstreamBadResponse, "", ""},
		"a status that is none":                 {nil, nil, 999, "", call.UpstreamBadResponse, "", ""},
		"what the output schema promises":       {promising(object), nil, 200, `{"a":1}`, call.OK, `{"a":1}`, ""},
		"JSON that breaks the promise":          {promising(object), nil, 200, `{"b":1}`, call.UpstreamBadResponse, "", ""},
		"HTML against the promise":              {promising(object), nil, 200, `<html>`, call.UpstreamBadResponse, "", ""},
		"nothing against the promise":           {promising(object), nil, 204, "", call.UpstreamBadResponse, "", ""},
		"a served 404 is not what the schema describes": {func(e *catalog.Endpoint) { promising(object)(e); e.ServedStatuses = []int{404} },
			nil, 404, "none", call.OK, "none", ""},
		"an encoding nobody asked for": {promising(object), map[string]string{"Content-Encoding": "br"}, 200, `{"a":1}`, call.UpstreamBadResponse, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, tt.change)))
			if got.Reason != tt.want || got.Status != tt.status {
				t.Fatalf("reason = %q at status %d, want %q at %d (%s: %v)", got.Reason, got.Status, tt.want, tt.status, got.Detail, got.Err)
			}
			if row, _ := call.RowOf(tt.want); got.Outcome != row.Outcome {
				t.Errorf("outcome = %q, want %q", got.Outcome, row.Outcome)
			}
			if string(got.Body) != tt.wantBody || string(got.ServiceAnswer) != tt.wantAnswer {
				t.Errorf("body = %q, answer = %q, want %q, %q", got.Body, got.ServiceAnswer, tt.wantBody, tt.wantAnswer)
			}
			if tt.want != call.OK && (got.Detail == "" || len(got.Header) != 0) {
				t.Errorf("detail = %q, header = %v, want a text and no header", got.Detail, got.Header)
			}
			if got.Latency <= 0 {
				t.Errorf("latency = %v", got.Latency)
			}
		})
	}
}

func TestClient_Ask_ClassifiesBrokenConnections(t *testing.T) {
	t.Parallel()
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := refused.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		url  string
		want call.Reason
	}{
		"refused":                        {"http://" + refused.Addr().String(), call.UpstreamUnreachable},
		"closed before a byte":           {accept(t, says("")), call.UpstreamUnreachable},
		"reset before a byte":            {accept(t, reset), call.UpstreamUnreachable},
		"closed at once":                 {accept(t, func(net.Conn) {}), call.UpstreamUnreachable},
		"cut in the head":                {accept(t, says("HTTP/1.1 200 OK\r\nContent-")), call.UpstreamBadResponse},
		"not HTTP":                       {accept(t, says("SSH-2.0-OpenSSH_9.2\r\n")), call.UpstreamBadResponse},
		"a head without end":             {accept(t, says("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("a", 200<<10))), call.UpstreamBadResponse},
		"400 of 1000 bytes":              {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+strings.Repeat("a", 400))), call.UpstreamBadResponse},
		"a chunk cut short":              {accept(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc")), call.UpstreamBadResponse},
		"no last chunk":                  {accept(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")), call.UpstreamBadResponse},
		"a malformed chunk":              {accept(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n")), call.UpstreamBadResponse},
		"two lengths":                    {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")), call.UpstreamBadResponse},
		"another protocol":               {accept(t, says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")), call.UpstreamBadResponse},
		"a hint before the answer":       {accept(t, says("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")), call.OK},
		"hints, and no answer":           {accept(t, says(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 50))), call.UpstreamBadResponse},
		"hints without end":              {accept(t, withoutEnd("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")), call.UpstreamBadResponse},
		"headers without end":            {accept(t, withoutEnd("HTTP/1.1 200 OK\r\n", "X: y\r\n")), call.UpstreamBadResponse},
		"a malformed header":             {accept(t, says("HTTP/1.1 200 OK\r\nno colon\r\n\r\n")), call.UpstreamBadResponse},
		"a header with a bad value":      {accept(t, says("HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n")), call.UpstreamBadResponse},
		"a status of four digits":        {accept(t, says("HTTP/1.1 2000 OK\r\n\r\n")), call.UpstreamBadResponse},
		"a length and chunks":            {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")), call.OK},
		"a coding nobody knows":          {accept(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\nok")), call.UpstreamBadResponse},
		"a length that is none":          {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok")), call.UpstreamBadResponse},
		"a reset in the answer":          {accept(t, func(c net.Conn) { says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")(c); resetOnClose(c) }), call.UpstreamBadResponse},
		"a trailer that is malformed":    {accept(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nno colon\r\n\r\n")), call.UpstreamBadResponse},
		"a body that ends by closing":    {accept(t, says("HTTP/1.0 200 OK\r\n\r\nok")), call.OK},
		"a length past the limit":        {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 1025\r\n\r\n")), call.UpstreamTooLarge},
		"503, cut short":                 {accept(t, says("HTTP/1.1 503 No\r\nContent-Length: 1000\r\n\r\nabc")), call.Upstream5xx},
		"400, cut short":                 {accept(t, says("HTTP/1.1 400 No\r\nContent-Length: 1000\r\n\r\nabc")), call.RejectedByService},
		"plain HTTP where TLS should be": {strings.Replace(accept(t, plainHTTP), "http:", "https:", 1), call.UpstreamUnreachable},
		"no name of this kind":           {"http://nobody.invalid", call.UpstreamUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := development().Ask(t.Context(), requestTo(serviceAt(t, tt.url, nil)))
			if name == "no name of this kind" && got.Reason == call.EgressDown {
				return // without a resolver the truth is that ours does not answer
			}
			if got.Reason != tt.want {
				t.Errorf("reason = %q, want %q (%s: %v)", got.Reason, tt.want, got.Detail, got.Err)
			}
			if tt.want != call.OK && len(got.Body) != 0 {
				t.Errorf("%d bytes of a body that does not count", len(got.Body))
			}
		})
	}
}

// withoutEnd returns a talk that says something once and the last part of it until nobody listens any more.
func withoutEnd(parts ...string) func(net.Conn) {
	return func(c net.Conn) {
		readHead(c)
		_, err := io.WriteString(c, strings.Join(parts[:len(parts)-1], ""))
		again := strings.Repeat(parts[len(parts)-1], 100)
		for err == nil {
			_, err = io.WriteString(c, again)
		}
	}
}

// plainHTTP answers the first bytes of a TLS handshake in plain text.
func plainHTTP(c net.Conn) {
	var hello [1]byte
	_, _ = c.Read(hello[:])
	_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
}

// reset reads the request and answers with a TCP reset.
func reset(c net.Conn) {
	readHead(c)
	resetOnClose(c)
}

func TestClient_Ask_EndsAtTheEndpointsTimeout(t *testing.T) {
	t.Parallel()
	tests := map[string]func(net.Conn, <-chan struct{}){
		"no byte": func(_ net.Conn, done <-chan struct{}) { <-done },
		"a body that stops": func(c net.Conn, done <-chan struct{}) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")
			<-done
		},
		"a head that stops": func(c net.Conn, done <-chan struct{}) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-")
			<-done
		},
	}
	for name, talk := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{})
			defer close(done)
			url := accept(t, func(c net.Conn) { readHead(c); talk(c, done) })
			got := development().Ask(t.Context(), requestTo(serviceAt(t, url, func(e *catalog.Endpoint) { e.Timeout = 100 * time.Millisecond })))
			if got.Reason != call.UpstreamTimeout {
				t.Errorf("reason = %q, want %q (%v)", got.Reason, call.UpstreamTimeout, got.Err)
			}
			if got.Latency < 100*time.Millisecond || got.Latency > 5*time.Second {
				t.Errorf("latency = %v, want about the timeout", got.Latency)
			}
		})
	}
}

func TestClient_Ask_AnEndlessBodyIsCutOff(t *testing.T) {
	t.Parallel()
	stopped := make(chan error, 1)
	url := accept(t, func(c net.Conn) {
		readHead(c)
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		for err == nil {
			_, err = c.Write(make([]byte, 64<<10))
		}
		stopped <- err
	})
	got := development().Ask(t.Context(), requestTo(serviceAt(t, url, nil)))
	if got.Reason != call.UpstreamTooLarge || len(got.Body) != 0 {
		t.Errorf("reason = %q with %d bytes, want %q with none", got.Reason, len(got.Body), call.UpstreamTooLarge)
	}
	<-stopped // the connection was given up
}

func TestClient_Ask_WhoeverStopsTheRequestIsNotTheService(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	defer close(done)
	server := accept(t, func(c net.Conn) { readHead(c); cancel(); <-done })
	got := development().Ask(ctx, requestTo(serviceAt(t, server, nil)))
	if got.Reason != call.LocalError || got.Outcome != call.Failed {
		t.Errorf("reason = %q, want %q (%v)", got.Reason, call.LocalError, got.Err)
	}
}

// B100: neither the request nor anything that came with it goes where a redirect points.
func TestClient_Ask_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, nil)))
		if got.Reason != call.UpstreamRedirect || got.Header.Get("Location") != "" {
			t.Errorf("%d: reason = %q, header = %v, want %q", status, got.Reason, got.Header, call.UpstreamRedirect)
		}
	}
	if elsewhere.Load() != 0 {
		t.Errorf("%d requests went elsewhere", elsewhere.Load())
	}
}

func TestClient_Ask_RefusesCertificatesThatItCannotTrust(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, nil)))
	if got.Reason != call.UpstreamUnreachable || asked.Load() != 0 {
		t.Errorf("reason = %q after %d requests, want %q after none (%v)", got.Reason, asked.Load(), call.UpstreamUnreachable, got.Err)
	}
}

func TestClient_Ask_RefusesPrivateAddressesOutsideDevelopment(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for name, url := range map[string]string{
		"an address": server.URL,
		"a name":     strings.Replace(server.URL, "127.0.0.1", "localhost", 1),
		"mapped":     strings.Replace(server.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1),
	} {
		got := New(Options{}).Ask(t.Context(), requestTo(serviceAt(t, url, nil)))
		if got.Reason != call.UpstreamUnreachable || asked.Load() != 0 {
			t.Errorf("%s: reason = %q after %d requests, want %q after none (%v)", name, got.Reason, asked.Load(), call.UpstreamUnreachable, got.Err)
		}
		if strings.Contains(got.Detail, "127.0.0.1") {
			t.Errorf("%s: the public text names the address: %s", name, got.Detail)
		}
	}
}

func TestClient_Ask_PassesEncodedBytesAsTheyCame(t *testing.T) {
	t.Parallel()
	packed := gzipped(t, `{"a":1}`)
	var accepted atomic.Value
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		accepted.Store(r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, packed)
	})
	tests := map[string]struct {
		change func(*catalog.Endpoint)
		accept string
		sent   string
	}{
		"a caller that reads gzip":            {nil, "gzip", "gzip"},
		"a caller that says nothing":          {nil, "", ""},
		"an endpoint whose answer is checked": {promising(`{"type":"object"}`), "gzip", "identity"},
	}
	for name, tt := range tests {
		r := requestTo(serviceAt(t, server.URL, tt.change))
		r.Header = http.Header{}
		if tt.accept != "" {
			r.Header.Set("Accept-Encoding", tt.accept)
		}
		got := development().Ask(t.Context(), r)
		if got.Reason != call.OK || string(got.Body) != packed || got.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: reason = %q, %d bytes, header = %v, want the bytes that were sent (%v)", name, got.Reason, len(got.Body), got.Header, got.Err)
		}
		if accepted.Load() != tt.sent {
			t.Errorf("%s: Accept-Encoding = %q, want %q", name, accepted.Load(), tt.sent)
		}
	}
}

func TestClient_Ask_HEADHasNoBodyHoweverLongItSaysItIs(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100000") })
	got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, func(e *catalog.Endpoint) { e.Method = "HEAD" })))
	if got.Reason != call.OK || len(got.Body) != 0 {
		t.Errorf("reason = %q with %d bytes, want %q with none (%v)", got.Reason, len(got.Body), call.OK, got.Err)
	}
}

func TestClient_Ask_SendsWhatTheCallerSentToWhereTheListingPoints(t *testing.T) {
	t.Parallel()
	type seen struct{ method, uri, host, body string }
	got := make(chan seen, 1)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, r.Host, string(body)}
	})
	r := requestTo(serviceAt(t, server.URL+"/base", func(e *catalog.Endpoint) { e.Method, e.Path = "POST", "/c/{id}" }))
	r.Path, r.RawQuery, r.Body = "/c/a%20b%3Fc", "q=1&q=%zz#x", []byte("\x00\xff body")
	r.Header = http.Header{"Host": {"elsewhere.example"}}
	if result := development().Ask(t.Context(), r); result.Reason != call.OK {
		t.Fatalf("reason = %q (%v)", result.Reason, result.Err)
	}
	want := seen{"POST", "/base/c/a%20b%3Fc?q=1&q=%zz%23x", strings.TrimPrefix(server.URL, "http://"), "\x00\xff body"}
	if s := <-got; s != want {
		t.Errorf("service saw %+v, want %+v", s, want)
	}
}

func TestClient_Ask_AsksOnceEvenWhenAKeptConnectionBreaks(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		var asked atomic.Int32
		url := accept(t, func(c net.Conn) {
			if readHead(c) {
				asked.Add(1)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
			if readHead(c) { // the second request on this connection gets no answer
				asked.Add(1)
			}
		})
		client := development()
		// Stored before a listing was refused it; net/http would take it for leave to ask again.
		r := requestTo(keyed(serviceAt(t, url, func(e *catalog.Endpoint) { e.Method = method }), "X-Idempotency-Key", "leave"))
		r.Method = method
		if got := client.Ask(t.Context(), r); got.Reason != call.OK {
			t.Fatalf("%s, first: reason = %q (%v)", method, got.Reason, got.Err)
		}
		if got := client.Ask(t.Context(), r); got.Reason != call.UpstreamUnreachable {
			t.Errorf("%s, second: reason = %q, want %q (%v)", method, got.Reason, call.UpstreamUnreachable, got.Err)
		}
		if asked.Load() != 2 {
			t.Errorf("%s: the service was asked %d times, want 2", method, asked.Load())
		}
	}
}
