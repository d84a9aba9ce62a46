package upstream

import (
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"market/internal/call"
	"market/internal/catalog"
)

// What one ask to an endpoint that allows 256 KiB may allocate, all in all, whatever the service sends: what it holds at any moment (see
// Client), and what it has given back by then. An endpoint may allow four times as much. Values are counted apart: see Client.checks.
const (
	askBytesMax    = 12 << 20
	valuesBytesMax = 36 << 20
)

// Not parallel: it counts what the whole process allocates.
func TestClient_Ask_HoldsNoMoreThanItsBoundWhateverComes(t *testing.T) {
	const limit = 256 << 10
	fill := func(element string) string {
		return "[" + strings.Repeat(element+",", limit/(len(element)+1)-2) + element + "]"
	}
	length := func(body string) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	}
	packed := func(body string) string {
		z := gzipped(t, body)
		return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " + strconv.Itoa(len(z)) + "\r\n\r\n" + z
	}
	for name, tt := range map[string]struct {
		answer string
		repeat string // what follows, without end
		want   call.Reason
		most   uint64
	}{
		"digits":                {length(fill(`1`)), "", call.OK, askBytesMax + valuesBytesMax},
		"one string":            {length(`["` + strings.Repeat("x", limit-4) + `"]`), "", call.OK, askBytesMax},
		"small objects, packed": {packed(fill(`{"a":1}`)), "", call.OK, askBytesMax + valuesBytesMax},
		"a bomb":                {packed(strings.Repeat(" ", 24*limit)), "", call.UpstreamTooLarge, askBytesMax},
		"5 GB announced":        {"HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n", strings.Repeat("a", 64<<10), call.UpstreamTooLarge, askBytesMax},
		"a body without end":    {"HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("a", 64<<10), call.UpstreamTooLarge, askBytesMax},
		"chunks without end":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", strings.Repeat("1\r\na\r\n", 10<<10), call.UpstreamTooLarge, askBytesMax},
		"a header without end":  {"HTTP/1.1 200 OK\r\nX: ", strings.Repeat("a", 64<<10), call.UpstreamBadResponse, askBytesMax},
		"headers without end":   {"HTTP/1.1 200 OK\r\n", strings.Repeat("a: b\r\n", 1<<10), call.UpstreamBadResponse, askBytesMax},
		"hints without end":     {"", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1<<10), call.UpstreamBadResponse, askBytesMax},
		"a refusal without end": {"HTTP/1.1 400 No\r\n\r\n", strings.Repeat("a", 64<<10), call.RejectedByService, askBytesMax},
		"a failure without end": {"HTTP/1.1 500 No\r\n\r\n", strings.Repeat("a", 64<<10), call.Upstream5xx, askBytesMax},
		"trailers without end":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n", strings.Repeat("a: b\r\n", 1<<10), call.UpstreamBadResponse, askBytesMax},
	} {
		url := accept(t, func(c net.Conn) {
			readHead(c)
			_, err := io.WriteString(c, tt.answer)
			for err == nil && tt.repeat != "" {
				_, err = io.WriteString(c, tt.repeat)
			}
		})
		change := func(e *catalog.Endpoint) {
			promising(`{"type":"array"}`)(e)
			e.MaxResponseBytes = limit
		}
		r := requestTo(serviceAt(t, url, change))
		client := development()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := client.Ask(t.Context(), r)
		runtime.ReadMemStats(&after)
		client.Close()
		if got.Reason != tt.want {
			t.Errorf("%s: %q, want %q (%v)", name, got.Reason, tt.want, got.Err)
		}
		used := after.TotalAlloc - before.TotalAlloc
		t.Logf("%-22s %6.2f MB", name, float64(used)/(1<<20))
		if used > tt.most {
			t.Errorf("%s: %d bytes were allocated, want at most %d", name, used, tt.most)
		}
	}
}
