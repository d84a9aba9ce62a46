package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"market/internal/accesslog"
	"market/internal/call"
	"market/internal/delivery"
)

// streamFrom starts a door whose one address answers with what stream does, and returns a connection that has asked it.
func streamFrom(t *testing.T, log zerolog.Logger, stream func(c echo.Context, to delivery.Responder) delivery.Answer) *bufio.Reader {
	t.Helper()
	s := newTestServer()
	e := echo.New()
	e.Pre(unhurried)
	e.Use(accesslog.Requests(log, entryOf))
	e.GET("/", func(c echo.Context) error { return s.writeAnswer(c, stream(c, responderOf(c))) })
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	c, err := net.Dial("tcp", server.Listener.Addr().String()) //nolint:noctx // to ourselves
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: market.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c)
}

// A stream that did not end well is no error of ours: its line says how the call ended, and that the connection was cut on purpose.
func TestStream_OneThatIsBrokenOffIsLoggedByWhatBecameOfTheCall(t *testing.T) {
	t.Parallel()
	lines := make(chan string, 1)
	in := streamFrom(t, zerolog.New(writes(lines)), func(_ echo.Context, to delivery.Responder) delivery.Answer {
		_ = to.Begin(delivery.Answer{Status: http.StatusOK}, time.Second)
		return delivery.Answer{Outcome: call.Failed, Reason: call.UpstreamTimeout}
	})
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("it ended as if it were whole")
	}
	if got := <-lines; !strings.Contains(got, `"level":"info"`) || !strings.Contains(got, `"reason":"upstream_timeout"`) || !strings.Contains(got, `"aborted":true`) {
		t.Errorf("the line is %s", got)
	}
}

type writes chan string

func (w writes) Write(b []byte) (int, error) { w <- string(b); return len(b), nil }
