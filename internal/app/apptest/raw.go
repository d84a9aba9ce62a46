package apptest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// SendBytes sends a request whose target and headers stand on the wire exactly as given: no client library has tidied them up.
func (w *World) SendBytes(t testing.TB, method, target, body string, headers ...string) Answer {
	t.Helper()
	connection, err := (&net.Dialer{Timeout: Patience}).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	lines := append([]string{method + " " + target + " HTTP/1.1"}, headers...)
	if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Host: ") }) {
		lines = append(lines, "Host: market.test")
	}
	lines = append(lines, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)), "Connection: close", "", body)
	if _, err := connection.Write([]byte(strings.Join(lines, "\r\n"))); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return answerOf(t, response)
}
