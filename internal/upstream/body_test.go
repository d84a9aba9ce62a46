package upstream

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

// B93, and every other way in which a body can end: what the caller gets is what the service finished sending, or nothing.
func TestClient_Ask_ServesWholeBodiesOnly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer string
		want   call.Reason
		body   string
	}{
		"cut after 400 of 1000 bytes":       {"200 OK\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("a", 400), call.UpstreamBadResponse, ""},
		"cut a byte before its end":         {"200 OK\r\nContent-Length: 3\r\n\r\nab", call.UpstreamBadResponse, ""},
		"cut before its first byte":         {"200 OK\r\nContent-Length: 3\r\n\r\n", call.UpstreamBadResponse, ""},
		"chunks without the last":           {"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", call.UpstreamBadResponse, ""},
		"the last chunk without its end":    {"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", call.UpstreamBadResponse, ""},
		"chunks":                            {"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", call.OK, "abc"},
		"chunks with extensions":            {"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n", call.OK, "abc"},
		"chunks with trailers":              {"200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Payment-Response\r\n\r\n3\r\nabc\r\n0\r\nPayment-Response: x\r\n\r\n", call.OK, "abc"},
		"a chunk of more than there is":     {"200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\nabc", call.UpstreamBadResponse, ""},
		"a chunk of less than nothing":      {"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", call.UpstreamBadResponse, ""},
		"a length and chunks":               {"200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", call.OK, "abc"},
		"a length that is no number":        {"200 OK\r\nContent-Length: three\r\n\r\nabc", call.UpstreamBadResponse, ""},
		"a length below nothing":            {"200 OK\r\nContent-Length: -1\r\n\r\nabc", call.UpstreamBadResponse, ""},
		"one length twice":                  {"200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", call.OK, "abc"},
		"more bytes than announced":         {"200 OK\r\nContent-Length: 3\r\n\r\nabcdef", call.OK, "abc"},
		"a transfer encoding of its own":    {"200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", call.UpstreamBadResponse, ""},
		"204":                               {"204 No Content\r\n\r\n", call.OK, ""},
		"204 with a body":                   {"204 No Content\r\nContent-Length: 3\r\n\r\nabc", call.OK, ""},
		"205":                               {"205 Reset Content\r\nContent-Length: 0\r\n\r\n", call.OK, ""},
		"304":                               {"304 Not Modified\r\nEtag: \"1\"\r\n\r\n", call.UpstreamBadResponse, ""},
		"300":                               {"300 Multiple Choices\r\nContent-Length: 3\r\n\r\nabc", call.UpstreamRedirect, ""},
		"an empty 200":                      {"200 OK\r\nContent-Length: 0\r\n\r\n", call.OK, ""},
		"a header over two lines":           {"200 OK\r\nContent-Type: text/plain;\r\n charset=utf-8\r\nContent-Length: 3\r\n\r\nabc", call.OK, "abc"},
		"a byte of 0 in a header":           {"200 OK\r\nEtag: a\x00b\r\nContent-Length: 3\r\n\r\nabc", call.UpstreamBadResponse, ""},
		"a line end of its own":             {"200 OK\r\nEtag: a\rSet-Cookie: b\r\nContent-Length: 3\r\n\r\nabc", call.UpstreamBadResponse, ""},
		"a header without a name":           {"200 OK\r\n: x\r\nContent-Length: 3\r\n\r\nabc", call.UpstreamBadResponse, ""},
		"a header with a space in its name": {"200 OK\r\nX Y: x\r\nContent-Length: 3\r\n\r\nabc", call.OK, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := development().Ask(t.Context(), requestTo(serviceAt(t, accept(t, says("HTTP/1.1 "+tt.answer)), nil)))
			if got.Reason != tt.want || string(got.Body) != tt.body {
				t.Errorf("%q with %q, want %q with %q (%v)", got.Reason, got.Body, tt.want, tt.body, got.Err)
			}
			if got.Header.Get("Etag") != "" || got.Header.Get("Trailer") != "" || got.Header.Get("Payment-Response") != "" {
				t.Errorf("header = %v", got.Header)
			}
		})
	}
}

// What an output schema promises is the body, whatever the service calls it. A reader that is strict and one that is not must see one value.
func TestClient_Ask_ChecksTheBodyAndNotItsName(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		contentType, body string
		want              call.Reason
	}{
		"JSON":                         {"application/json", `{"a":1}`, call.OK},
		"JSON with a charset":          {"application/json; charset=utf-8", `{"a":1}`, call.OK},
		"JSON called something else":   {"text/html", `{"a":1}`, call.OK},
		"JSON without a type":          {"", `{"a":1}`, call.OK},
		"JSON with spaces around":      {"application/json", " \r\n{\"a\":1}\n", call.OK},
		"a page called JSON":           {"application/json", `<html></html>`, call.UpstreamBadResponse},
		"a byte order mark":            {"application/json", "\xef\xbb\xbf" + `{"a":1}`, call.UpstreamBadResponse},
		"UTF-16":                       {"application/json; charset=utf-16", "{\x00\"\x00a\x00\"\x00:\x001\x00}\x00", call.UpstreamBadResponse},
		"Latin-1":                      {"application/json; charset=iso-8859-1", "{\"a\":\"\xe9\"}", call.UpstreamBadResponse},
		"a member twice":               {"application/json", `{"a":1,"a":2}`, call.UpstreamBadResponse},
		"a giant number":               {"application/json", `{"a":1e999999999}`, call.UpstreamBadResponse},
		"a number of very many digits": {"application/json", `{"a":` + strings.Repeat("9", 500) + `}`, call.UpstreamBadResponse},
		"NaN":                          {"application/json", `{"a":NaN}`, call.UpstreamBadResponse},
		"as deep as may be":            {"application/json", `{"a":` + strings.Repeat("[", 127) + strings.Repeat("]", 127) + `}`, call.OK},
		"a level deeper":               {"application/json", `{"a":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`, call.UpstreamBadResponse},
		"without an end":               {"application/json", `{"a":1`, call.UpstreamBadResponse},
		"two values":                   {"application/json", `{"a":1}{"a":1}`, call.UpstreamBadResponse},
		"lines of JSON":                {"application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n", call.UpstreamBadResponse},
		"nothing":                      {"application/json", "", call.UpstreamBadResponse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = nil
				if tt.contentType != "" {
					w.Header().Set("Content-Type", tt.contentType)
				}
				_, _ = io.WriteString(w, tt.body)
			})
			got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, promising(`{"type":"object","required":["a"]}`))))
			if got.Reason != tt.want || (tt.want == call.OK && string(got.Body) != tt.body) {
				t.Errorf("%q with %q, want %q (%v)", got.Reason, got.Body, tt.want, got.Err)
			}
			if tt.want == call.OK && got.Header.Get("Content-Type") != tt.contentType {
				t.Errorf("Content-Type = %q, want %q", got.Header.Get("Content-Type"), tt.contentType)
			}
		})
	}
}

// The endpoint's timeout is for the whole: bytes that keep coming do not stretch it.
func TestClient_Ask_ATrickleEndsAtTheTimeout(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"in the body":   "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
		"in a chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n",
		"in the header": "HTTP/1.1 200 OK\r\nX: ",
		"in a refusal":  "HTTP/1.1 400 No\r\nContent-Length: 1000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := accept(t, func(c net.Conn) {
				readHead(c)
				_, err := io.WriteString(c, head)
				tick := time.NewTicker(10 * time.Millisecond)
				defer tick.Stop()
				for err == nil {
					<-tick.C
					_, err = io.WriteString(c, "a")
				}
			})
			want := call.UpstreamTimeout
			if name == "in a refusal" {
				want = call.RejectedByService // its status said it all
			}
			got := development().Ask(t.Context(), requestTo(serviceAt(t, url, func(e *catalog.Endpoint) { e.Timeout = 200 * time.Millisecond })))
			if got.Reason != want || len(got.Body)+len(got.ServiceAnswer) != 0 || got.Latency < 200*time.Millisecond || got.Latency > 5*time.Second {
				t.Errorf("%q after %v, want %q after the timeout (%v)", got.Reason, got.Latency, want, got.Err)
			}
		})
	}
}

// B101: the service gets the very bytes that were paid for, and how long they are.
func TestClient_Ask_SendsTheBytesThatItWasGiven(t *testing.T) {
	t.Parallel()
	type got struct {
		sum      [32]byte
		length   int64
		encoding []string
	}
	seen := make(chan got, 1)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- got{sha256.Sum256(body), r.ContentLength, r.TransferEncoding}
	})
	large := bytes.Repeat([]byte{0, 0xff, '\r', '\n', 'a'}, 1<<20/5)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for name, body := range map[string][]byte{"none": nil, "JSON": []byte(`{"a":1}`), "a MB of anything": large} {
			r := requestTo(serviceAt(t, server.URL, func(e *catalog.Endpoint) { e.Method = method }))
			r.Body = body
			if result := development().Ask(t.Context(), r); result.Reason != call.OK {
				t.Fatalf("%s, %s: %q (%v)", method, name, result.Reason, result.Err)
			}
			if got := <-seen; got.sum != sha256.Sum256(body) || got.length != int64(len(body)) || len(got.encoding) != 0 {
				t.Errorf("%s, %s: the service got %d bytes, encoded %v, want the same %d", method, name, got.length, got.encoding, len(body))
			}
		}
	}
}
