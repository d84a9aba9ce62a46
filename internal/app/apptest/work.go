package apptest

import (
	"io"
	"net/http"
	"strings"
)

// Answers is a service that answers with a status and a body; each of headers is one line.
func Answers(status int, body string, headers ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			rw.Header().Set(name, value)
		}
		rw.WriteHeader(status)
		_, _ = rw.Write([]byte(body))
	}
}

// HangsUp is a service that writes so much of an answer and closes the connection.
func HangsUp(raw string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = connection.Write([]byte(raw))
		_ = connection.Close()
	}
}

// Sleeps is a service that answers nobody in time.
func Sleeps(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // a server notices that its client left once the body is read
	<-r.Context().Done()
}
