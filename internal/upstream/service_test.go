package upstream

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/catalog"
)

// serviceAt returns a service with one endpoint, GET /x unless change says otherwise.
func serviceAt(t *testing.T, baseURL string, change func(*catalog.Endpoint)) *catalog.Service {
	t.Helper()
	statuses, err := catalog.ParseStatuses("200-299")
	if err != nil {
		t.Fatal(err)
	}
	e := &catalog.Endpoint{
		ID: call.NewID(), Method: "GET", Path: "/x", Timeout: 10 * time.Second, MaxResponseBytes: 1 << 10,
		Prices: []catalog.Price{{Revision: 1, USD: decimal.New(1, -3)}},
	}
	if change != nil {
		change(e)
	}
	s := &catalog.Service{
		ID: call.NewID(), Slug: "sample", BaseURL: baseURL, State: catalog.Listed,
		Probe: catalog.Probe{Method: "GET", Path: "/healthz", Statuses: statuses}, Endpoints: []*catalog.Endpoint{e},
	}
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	return s
}

func promising(outputSchema string) func(*catalog.Endpoint) {
	return func(e *catalog.Endpoint) { e.OutputSchema = json.RawMessage(outputSchema) }
}

// requestTo is a request to the service's only endpoint.
func requestTo(s *catalog.Service) Request {
	e := s.Endpoints[0]
	return Request{Service: s, Endpoint: e, Path: e.Path, Method: e.Method, CallID: call.NewID()}
}

// serve starts a server that answers with h.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// accept runs talk for each connection to a listener of its own and returns the URL; for answers that net/http's server would not send.
func accept(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				talk(c)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// says returns a talk that reads a request's head and writes one answer.
func says(answer string) func(net.Conn) {
	return func(c net.Conn) {
		readHead(c)
		_, _ = io.WriteString(c, answer)
	}
}

// readHead reads a request without a body up to its empty line; false where none came.
func readHead(c net.Conn) bool {
	var last [4]byte
	for string(last[:]) != "\r\n\r\n" {
		var b [1]byte
		if _, err := c.Read(b[:]); err != nil {
			return false
		}
		copy(last[:], last[1:])
		last[3] = b[0]
	}
	return true
}

func development() *Client { return New(Options{AllowPrivate: true}) }
