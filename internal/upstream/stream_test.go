package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"market/internal/call"
	"market/internal/catalog"
)

// A taker is a Sink that remembers what it took. took, where there is one, hears of each piece and may refuse it.
type taker struct {
	begun  int
	status int
	header http.Header
	body   strings.Builder
	opened func() // hears of the beginning
	took   func(piece string) error
}

func (s *taker) Begin(status int, header http.Header) error {
	s.begun++
	s.status, s.header = status, header
	if s.opened != nil {
		s.opened()
	}
	return nil
}

func (s *taker) Write(piece []byte) error {
	s.body.Write(piece)
	if s.took == nil {
		return nil
	}
	return s.took(string(piece))
}

// streaming makes the endpoint a stream that pauses briefly at most.
func streaming(e *catalog.Endpoint) {
	e.Stream, e.IdleTimeout = true, 10*time.Second
}

func streamOf(t *testing.T, url string, change func(*catalog.Endpoint)) Request {
	t.Helper()
	return requestTo(serviceAt(t, url, func(e *catalog.Endpoint) {
		streaming(e)
		if change != nil {
			change(e)
		}
	}))
}

// B105
func TestClient_Stream_PassesEachPieceOnBeforeTheServiceSendsTheNext(t *testing.T) {
	t.Parallel()
	arrived := make(chan string)
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{"data: 1\n\n", "data: 2\n\n", "data: 3\n\n"} {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
			if got := <-arrived; got != piece { // the test ends with its time where nothing arrives
				t.Errorf("the sink has %q, want %q", got, piece)
			}
		}
	})
	to := &taker{took: func(piece string) error { arrived <- piece; return nil }}
	got := development().Stream(t.Context(), streamOf(t, server.URL, nil), to)
	if got.Reason != call.OK || got.Outcome != call.Served || !got.Streamed || to.begun != 1 || to.status != http.StatusOK {
		t.Errorf("the stream ended %q (%s: %v), streamed %v, begun %d times", got.Reason, got.Detail, got.Err, got.Streamed, to.begun)
	}
}

// B93: only an end that the framing announces is one.
func TestClient_Stream_TheServicesSideDecidesHowItEnds(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Market-Outcome\r\n\r\n3\r\nabc\r\n"
	tests := map[string]struct {
		answer   string
		want     call.Reason
		streamed bool
		body     string
	}{
		"the last chunk":                  {chunked + "0\r\n\r\n", call.OK, true, "abc"},
		"a trailer, which is dropped":     {chunked + "0\r\nMarket-Outcome: served\r\n\r\n", call.OK, true, "abc"},
		"the length that was announced":   {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", call.OK, true, "abc"},
		"nothing at all":                  {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", call.OK, true, ""},
		"204":                             {"HTTP/1.1 204 No Content\r\n\r\n", call.OK, false, ""},
		"no last chunk":                   {chunked, call.UpstreamBadResponse, true, "abc"},
		"a chunk cut short":               {chunked + "9\r\nabc", call.UpstreamBadResponse, true, "abcabc"},
		"a malformed chunk":               {chunked + "zz\r\n", call.UpstreamBadResponse, true, "abc"},
		"400 of 1000 bytes":               {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("a", 400), call.UpstreamBadResponse, true, strings.Repeat("a", 400)},
		"HTTP/1.0, which ends by closing": {"HTTP/1.0 200 OK\r\n\r\nabc", call.UpstreamBadResponse, false, ""},
		"HTTP/1.1 that ends by closing":   {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", call.UpstreamBadResponse, false, ""},
		"a length past the limit":         {"HTTP/1.1 200 OK\r\nContent-Length: 1025\r\n\r\n", call.UpstreamTooLarge, false, ""},
		"an encoding without a name":      {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, \r\nContent-Length: 3\r\n\r\nabc", call.UpstreamBadResponse, false, ""},
		"500":                             {"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nabc", call.Upstream5xx, false, ""},
		"a redirect":                      {"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", call.UpstreamRedirect, false, ""},
		"400":                             {"HTTP/1.1 400 No\r\nContent-Length: 3\r\n\r\nabc", call.RejectedByService, false, ""},
		"nothing before it hangs up":      {"", call.UpstreamUnreachable, false, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := &taker{}
			got := development().Stream(t.Context(), streamOf(t, accept(t, says(tt.answer)), nil), to)
			if got.Reason != tt.want || got.Streamed != tt.streamed || to.body.String() != tt.body {
				t.Errorf("%q (%s: %v), streamed %v, %d bytes; want %q, %v, %q", got.Reason, got.Detail, got.Err, got.Streamed, to.body.Len(),
					tt.want, tt.streamed, tt.body)
			}
			if (to.begun == 1) != tt.streamed || to.header.Get("Market-Outcome") != "" {
				t.Errorf("begun %d times, with %v", to.begun, to.header)
			}
			if row, _ := call.RowOf(tt.want); got.Outcome != row.Outcome {
				t.Errorf("outcome = %q, want %q", got.Outcome, row.Outcome)
			}
		})
	}
}

func TestClient_Stream_PassesOnNoMoreThanTheListingAllows(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat("a", 100))
			_ = http.NewResponseController(w).Flush()
		}
	})
	to := &taker{}
	got := development().Stream(t.Context(), streamOf(t, server.URL, nil), to)
	if got.Reason != call.UpstreamTooLarge || !got.Streamed || to.body.Len() > 1024 {
		t.Errorf("%q after %d bytes, want too large after at most 1024", got.Reason, to.body.Len())
	}
}

func TestClient_Stream_EndsAServiceThatKeepsItWaiting(t *testing.T) {
	t.Parallel()
	silent := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	tests := map[string]struct {
		change   func(*catalog.Endpoint)
		work     http.HandlerFunc
		streamed bool
		detail   string
	}{
		"without an answer": {func(e *catalog.Endpoint) { e.IdleTimeout = 100 * time.Millisecond }, silent, false, "nothing for 100ms"},
		"after its headers": {func(e *catalog.Endpoint) { e.IdleTimeout = 100 * time.Millisecond }, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			silent(w, r)
		}, true, "nothing for 100ms"},
		"in all": {func(e *catalog.Endpoint) { e.Timeout, e.MaxResponseBytes = 200*time.Millisecond, 1<<20 }, func(w http.ResponseWriter, r *http.Request) {
			drip := time.NewTicker(10 * time.Millisecond)
			defer drip.Stop()
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "a")
				_ = http.NewResponseController(w).Flush()
				<-drip.C
			}
		}, true, "not over after 200ms"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := development().Stream(t.Context(), streamOf(t, serve(t, tt.work).URL, tt.change), &taker{})
			if got.Reason != call.UpstreamTimeout || got.Streamed != tt.streamed || !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("%q, streamed %v, %q (%v); want a timeout, %v, %q", got.Reason, got.Streamed, got.Detail, got.Err, tt.streamed, tt.detail)
			}
		})
	}
}

func TestClient_Stream_ABusySinkIsNoPauseOfTheService(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	ready := make(chan struct{}, 1)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ready:
				_, _ = io.WriteString(w, "abc")
			case <-r.Context().Done():
				return
			}
		}
	})
	busy := func() { <-time.After(2 * limit); ready <- struct{}{} }
	to := &taker{opened: busy, took: func(string) error { busy(); return nil }}
	got := development().Stream(t.Context(), streamOf(t, server.URL, func(e *catalog.Endpoint) { e.IdleTimeout, e.Timeout = limit, limit }), to)
	if got.Reason != call.OK || got.Latency > limit {
		t.Errorf("%q (%s), %v of the service's time; want it served within %v", got.Reason, got.Detail, got.Latency, limit)
	}
}

// A service gives up a connection that takes nothing for a while, as any server may. Whoever held it up so long could strike it at will otherwise.
func TestClient_Stream_ABreakThatTheSinkCanHaveCausedIsNoneOfTheService(t *testing.T) {
	t.Parallel()
	impatient := func(c net.Conn) {
		readHead(c)
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		chunk := "10000\r\n" + strings.Repeat("a", 64<<10) + "\r\n"
		for err == nil {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, err = io.WriteString(c, chunk)
		}
	}
	stalled := false
	to := &taker{took: func(string) error {
		if !stalled {
			stalled = true
			<-time.After(stallMax + 100*time.Millisecond)
		}
		return nil
	}}
	got := development().Stream(t.Context(), streamOf(t, accept(t, impatient), func(e *catalog.Endpoint) { e.MaxResponseBytes = 64 << 20 }), to)
	if got.Reason != call.CallerStalled || got.Outcome != call.Failed || !got.Streamed {
		t.Errorf("%q (%s: %v), want it to be the caller's doing", got.Reason, got.Detail, got.Err)
	}
}

func TestStall_ExplainsABreakUntilTheServiceIsHeardOfAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		busy  []time.Duration
		heard time.Duration // how long the piece after that was waited for
		want  bool
	}{
		"not at all":                      {nil, 0, false},
		"as long as it may":               {[]time.Duration{stallMax}, 0, false},
		"longer":                          {[]time.Duration{stallMax + 1}, 0, true},
		"longer, and a while ago":         {[]time.Duration{stallMax + 1, 0, 0}, aliveAfter - 1, true},
		"longer, and then it was there":   {[]time.Duration{stallMax + 1, 0, 0}, aliveAfter, false},
		"in all as long as it may":        {slices.Repeat([]time.Duration{time.Second}, 10), 0, false},
		"in all longer":                   {append(slices.Repeat([]time.Duration{time.Second}, 10), 1), 0, true},
		"in all longer, and it was there": {append(slices.Repeat([]time.Duration{time.Second}, 10), 1), aliveAfter, true},
	} {
		var s stall
		for _, busy := range tt.busy {
			s.took(busy)
		}
		s.heard(tt.heard)
		if got := s.explains(); got != tt.want {
			t.Errorf("%s: explains %v, want %v", name, got, tt.want)
		}
	}
}

func TestClient_Stream_SaysWhyItWasEndedFromOurSide(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "abc")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	stopping := &Stop{call.Interrupted, "we stopped"}
	tests := map[string]struct {
		took func(end context.CancelCauseFunc) error
		want call.Reason
	}{
		"the sink takes no more":      {func(context.CancelCauseFunc) error { return errors.New("broken pipe") }, call.CallerLeft},
		"the sink says why":           {func(context.CancelCauseFunc) error { return stopping }, call.Interrupted},
		"the context says why":        {func(end context.CancelCauseFunc) error { end(stopping); return nil }, call.Interrupted},
		"the context does not say it": {func(end context.CancelCauseFunc) error { end(nil); return nil }, call.LocalError},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			to := &taker{took: func(string) error { return tt.took(end) }}
			got := development().Stream(ctx, streamOf(t, serve(t, endless).URL, nil), to)
			if got.Reason != tt.want || !got.Streamed || got.Detail == "" {
				t.Errorf("%q (%s: %v), want %q", got.Reason, got.Detail, got.Err, tt.want)
			}
		})
	}
}

// B105: an event stream that is not listed as one would be waited for until its time is over.
func TestClient_Ask_RefusesAnEventStreamAtOnceAndSaysWhatTheListingLacks(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream;charset=utf-8")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, nil)))
	if got.Reason != call.UpstreamBadResponse || !strings.Contains(got.Detail, `"stream": true`) {
		t.Errorf("%q, %q; want a bad response that says how to list it", got.Reason, got.Detail)
	}
}

// HTTP/2 frames every end, and its transport would send a request again by itself: a stream is asked for once.
func TestClient_Stream_OverHTTP2TheLastFrameIsTheEnd(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	certificate := authority.issue(t, publicHost, nil)
	half := func(s *stream) {
		s.head(false, ":status", "200")
		_ = s.WriteData(s.id, false, []byte("half"))
	}
	for name, tt := range map[string]struct {
		answer func(*stream)
		want   call.Reason
		body   string
	}{
		"an end":                         {func(s *stream) { half(s); _ = s.WriteData(s.id, true, []byte("whole")) }, call.OK, "halfwhole"},
		"a reset in the answer":          {func(s *stream) { half(s); _ = s.WriteRSTStream(s.id, http2.ErrCodeInternal) }, call.UpstreamBadResponse, "half"},
		"a reset that asks to try again": {func(s *stream) { _ = s.WriteRSTStream(s.id, http2.ErrCodeRefusedStream) }, call.UpstreamUnreachable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, asked := serveHTTP2(t, certificate, tt.answer)
			_, resolver := startDNS(t, always(0, publicAddress))
			c := redirected(authority.trusting(New(Options{Resolver: resolver})), url)
			t.Cleanup(c.Close)
			to := &taker{}
			r := streamOf(t, publicURL, func(e *catalog.Endpoint) { e.Method = http.MethodPost })
			r.Body = []byte(`{"a":1}`)
			got := c.Stream(t.Context(), r, to)
			if got.Reason != tt.want || to.body.String() != tt.body && tt.want == call.OK || asked.Load() != 1 {
				t.Errorf("%q (%s: %v) after %q, asked %d times; want %q", got.Reason, got.Detail, got.Err, to.body.String(), asked.Load(), tt.want)
			}
		})
	}
}
