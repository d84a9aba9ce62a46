package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// open starts the public door over a real listener and returns a connection to it.
func open(t *testing.T, s *http.Server) func() net.Conn {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(Readable(l)) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// B140, B11: also what is no HTTP, or has headers that are too large, is answered so that a script can read it.
func TestReadable_AnswersOfTheParserHaveTheMannersOfAllOthers(t *testing.T) {
	t.Parallel()
	dial := open(t, newTestServer().Public())
	for name, tt := range map[string]struct {
		request string
		status  int
	}{
		"no HTTP":                        {"hello\r\n\r\n", 400},
		"no host":                        {"GET / HTTP/1.1\r\n\r\n", 400},
		"a header that is none":          {"GET / HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n", 400},
		"a payment header of 128 KiB":    {"GET / HTTP/1.1\r\nHost: x\r\nX-PAYMENT: " + strings.Repeat("A", 128<<10) + "\r\n\r\n", 431},
		"a transfer that nobody knows":   {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: smoke\r\n\r\n", 501},
		"another version of HTTP":        {"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
		"a good request, then a bad one": {"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\nhello\r\n\r\n", 404},
		"a preflight of nothing at all":  {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 204},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial()
			if _, err := io.WriteString(c, tt.request); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(c)
			answer := readAnswer(t, in, tt.status)
			if tt.status == 404 { // the second answer on a connection that was handled before
				_, _ = io.Copy(io.Discard, answer.Body)
				readAnswer(t, in, 400)
			}
		})
	}
}

func readAnswer(t *testing.T, in *bufio.Reader, status int) *http.Response {
	t.Helper()
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != status {
		t.Errorf("status %d, want %d", answer.StatusCode, status)
	}
	for _, header := range manners {
		if got := answer.Header.Values(header[0]); len(got) != 1 || got[0] != header[1] {
			t.Errorf("%s is %q, want %q", header[0], got, header[1])
		}
	}
	return answer
}

// A provider whose answer reads like one of the parser's changes nothing of the answer around it.
func TestReadable_WhatAHandlerWritesIsNotTouched(t *testing.T) {
	t.Parallel()
	const forged = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	s := door(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		_ = control.Flush() // so that the next write goes to the connection as it is
		_, _ = io.WriteString(w, forged)
		_ = control.Flush()
	}))
	tellConn(s)
	c := open(t, s)()
	if _, err := io.WriteString(c, "GET / HTTP/1.0\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || string(body) != forged {
		t.Errorf("the body is %q, %v, want %q", body, err, forged)
	}
}
