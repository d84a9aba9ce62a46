package hostiletest

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"market/internal/app/apptest"
)

// streamRows are services that sell an answer which is passed on as it comes. What goes wrong once it has begun ends in a connection that breaks,
// which no client takes for an end, and the money goes back all the same.
func streamRows() []row {
	const event = "data: 1\n\n"
	listing := func(more map[string]any) map[string]any {
		all := map[string]any{"stream": true, "timeout_ms": 10_000, "idle_timeout_ms": 5000}
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	begun := func(after string) func(*talk) {
		return says("HTTP/1.1 200 OK\r\n{forged}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n" + event + "\r\n" + after)
	}
	does := func(name string, work func(*talk), w want, more map[string]any) row {
		return row{name: name, plan: working(work), listing: listing(more), want: w}
	}
	// The first byte has to come in this time on a busy machine, too.
	idle := map[string]any{"idle_timeout_ms": 2000}
	return []row{
		does("it streams and ends well", begun("9\r\n"+event+"\r\n0\r\n\r\n"), serves(event+event), nil),
		does("it forges the trailer that says how a call ended", begun("0\r\nMarket-Outcome: evil\r\nSet-Cookie: evil=1\r\n\r\n"), serves(event), nil),
		does("it breaks off (B93)", begun("9\r\ndata"), badResponse.breaking(), nil),
		does("it breaks off between two pieces (B93)", begun(""), badResponse.breaking(), nil),
		does("it resets the connection (B93)", func(t *talk) { begun("")(t); t.pause(50 * time.Millisecond); t.reset() }, badResponse.breaking(), nil),
		does("it sends chunks of garbage", begun("evil\r\n"), badResponse.breaking(), nil),
		does("it falls silent", func(t *talk) { begun("")(t); t.wait() }, timeout.breaking(), idle),
		does("it falls silent before its first byte", func(t *talk) {
			says("HTTP/1.1 200 OK\r\n{forged}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")(t)
			t.wait()
		}, timeout.breaking(), idle),
		does("it never begins", func(t *talk) { t.eat(); t.wait() }, timeout, idle),
		does("it goes on for longer than its listing allows", func(t *talk) { begun("")(t); t.drip(strings.Repeat("1\r\nx\r\n", 200), 20*time.Millisecond) }, timeout.breaking(),
			map[string]any{"timeout_ms": 2000}),
		does("it streams more than its listing allows", func(t *talk) { begun("")(t); t.pour("9\r\n" + event + "\r\n") }, tooLarge.breaking(), map[string]any{"max_response_bytes": 100_000}),
		does("it announces more than its listing allows", says("HTTP/1.1 200 OK\r\n{forged}Content-Length: 5368709120\r\n\r\n"+event), tooLarge, nil),
		does("it announces more than it streams (B93)", says("HTTP/1.1 200 OK\r\n{forged}Content-Length: 1000\r\n\r\n"+event), badResponse.breaking(), nil),
		does("it ends its stream by closing, which could be a break", says("HTTP/1.1 200 OK\r\n{forged}\r\n"+event), badResponse, nil),
		does("it speaks HTTP/1.0", says("HTTP/1.0 200 OK\r\n{forged}\r\n"+event), badResponse, nil),
		does("it fails instead", answers("500 Internal Server Error", "evil"), failsInside, nil),
		does("it redirects instead (B100)", answers("302 Found", "", "Location: http://169.254.169.254/"), redirects, nil),
		does("it turns the request down instead", answers("400 Bad Request", "evil reasons"), turnsDown(400).telling(`"evil reasons"`), nil),
		does("it has nothing to stream", says("HTTP/1.1 204 No Content\r\n{forged}\r\n"), serves("").with(http.StatusNoContent), nil),
		does("it packs its stream", says("HTTP/1.1 200 OK\r\n{forged}Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk(apptest.Gzip(event))+"0\r\n\r\n"), serves(apptest.Gzip(event)), nil),
		{name: "it resets its stream of HTTP/2 (B93)", plan: plan{h2: func(s *stream) { s.ok(); s.body(false, event); _ = s.WriteRSTStream(s.id, http2.ErrCodeInternal) }},
			listing: listing(nil), want: badResponse.breaking()},
		{name: "it streams empty frames of HTTP/2 without end", plan: plan{h2: func(s *stream) { s.ok(); until(func() error { return s.WriteData(s.id, false, nil) }) }},
			listing: listing(idle), want: timeout.breaking()},
	}
}

// breaking returns the want of an answer that has begun.
func (w want) breaking() want { w.status, w.breaks = http.StatusOK, true; return w }

// chunk is text as one chunk.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
