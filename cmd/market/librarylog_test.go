package main

import (
	"bytes"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// A heard is a log that tells of each line.
type heard struct {
	mu    sync.Mutex
	out   bytes.Buffer
	lines chan struct{}
}

func (h *heard) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines <- struct{}{}
	return h.out.Write(line)
}

// Not parallel: what net/http prints goes to the one logger of the process.
func TestLibraryLog_KeepsTheFactAndNotTheBytesOfAService(t *testing.T) {
	h := &heard{lines: make(chan struct{}, 10)}
	before := stdlog.Writer()
	stdlog.SetOutput(libraryLog{zerolog.New(h)})
	defer stdlog.SetOutput(before)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	idle := make(chan struct{})
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-idle
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK secretive\r\n\r\n")
	}()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	close(idle)
	select {
	case <-h.lines:
	case <-t.Context().Done():
	}
	stdlog.Printf("http: Accept error: %v", "too many open files")
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := h.out.String(); strings.Contains(got, "secretive") || !strings.Contains(got, "Unsolicited response received") || !strings.Contains(got, "too many open files") {
		t.Errorf("log = %s", got)
	}
}
