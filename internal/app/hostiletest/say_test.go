package hostiletest

import (
	"fmt"
	"strings"
	"sync"

	"market/internal/app/apptest"
)

// says is a service that takes the request whole and writes text, where {forged} stands for all headers that it should not send.
func says(text string) func(*talk) {
	text = strings.ReplaceAll(text, "{forged}", forged)
	return func(t *talk) {
		t.eat()
		t.say(text)
	}
}

// answer is a well-formed answer; each of headers is one line.
func answer(status, body string, headers ...string) string {
	head := "HTTP/1.1 " + status + "\r\n" + forged + fmt.Sprintf("Content-Length: %d\r\n", len(body))
	for _, h := range headers {
		head += h + "\r\n"
	}
	return head + "\r\n" + body
}

const typeJSON = "Content-Type: application/json"

// answers is a service that gives a well-formed answer.
func answers(status, body string, headers ...string) func(*talk) {
	return says(answer(status, body, headers...))
}

// good is a service that does what it should.
func good(t *talk) { answers("200 OK", done, typeJSON)(t) }

// chunked is an answer in chunks, with what is to come after the last byte of its head.
func chunked(after string, headers ...string) func(*talk) {
	head := "HTTP/1.1 200 OK\r\n" + forged + typeJSON + "\r\nTransfer-Encoding: chunked\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	return says(head + "\r\n" + after)
}

// working is a plan whose work is so.
func working(work func(*talk)) plan { return plan{work: work} }

// promising is a listing with an output schema.
func promising(schema map[string]any) map[string]any { return map[string]any{"output_schema": schema} }

// promised is what a careful listing says of done.
var promised = map[string]any{"type": "object", "required": []string{"done"}, "properties": map[string]any{"done": map[string]any{"type": "boolean"}}}

// soon is a listing that does not wait long.
func soon() map[string]any { return map[string]any{"timeout_ms": 1000} }

// bomb is a gzip of 900 MB of zeros, in less than 1 MiB: one of 9 MB a hundred times, which is one gzip to who reads it.
var bomb = sync.OnceValue(func() string { return strings.Repeat(apptest.Gzip(strings.Repeat("\x00", 9<<20)), 100) })
