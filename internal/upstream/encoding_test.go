package upstream

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func deflated(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// B95: whatever the service packs, however it frames it, whatever the caller said it reads, and whether or not we look into it: the bytes, their
// encoding and their length stay what the service made them.
func TestClient_Ask_KeepsBytesEncodingAndLengthTogether(t *testing.T) {
	t.Parallel()
	const object = `{"a":1}`
	for encoding, body := range map[string]string{"": object, "gzip": gzipped(t, object)} {
		for framing, answer := range map[string]string{
			"a length":  "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body,
			"chunks":    "Transfer-Encoding: chunked\r\n\r\n3\r\n" + body[:3] + "\r\n" + strconv.FormatInt(int64(len(body)-3), 16) + "\r\n" + body[3:] + "\r\n0\r\n\r\n",
			"its close": "Connection: close\r\n\r\n" + body,
		} {
			head := "HTTP/1.1 200 OK\r\n"
			if encoding != "" {
				head += "Content-Encoding: " + encoding + "\r\n"
			}
			for checked, change := range map[bool]func(*catalog.Endpoint){true: promising(`{"type":"object","required":["a"]}`), false: nil} {
				for _, accepts := range []string{"", "gzip", "identity"} {
					r := requestTo(serviceAt(t, accept(t, says(head+answer)), change))
					if r.Header = (http.Header{}); accepts != "" {
						r.Header.Set("Accept-Encoding", accepts)
					}
					got := development().Ask(t.Context(), r)
					if got.Reason != call.OK || string(got.Body) != body || got.Header.Get("Content-Encoding") != encoding || got.Header.Get("Content-Length") != "" {
						t.Errorf("%q by %s, checked %v, accepting %q: %q, %d of %d bytes as %q (%v)", encoding, framing, checked, accepts,
							got.Reason, len(got.Body), len(body), got.Header.Get("Content-Encoding"), got.Err)
					}
				}
			}
		}
	}
}

func TestClient_Ask_LooksThroughGzipAndThroughNothingElse(t *testing.T) {
	t.Parallel()
	const object = `{"a":1}`
	packed := gzipped(t, object)
	tests := map[string]struct {
		encodings []string
		body      string
		unchecked call.Reason // where the listing promises no form
		checked   call.Reason
		label     string // that the caller sees where nobody checks
	}{
		"gzip":                        {[]string{"gzip"}, packed, call.OK, call.OK, "gzip"},
		"gzip in capitals":            {[]string{"GZIP"}, packed, call.OK, call.OK, "GZIP"},
		"its old name":                {[]string{"x-gzip"}, packed, call.OK, call.OK, "x-gzip"},
		"no encoding, by name":        {[]string{"identity"}, object, call.OK, call.OK, ""},
		"gzip in two parts":           {[]string{"gzip"}, gzipped(t, object[:4]) + gzipped(t, object[4:]), call.OK, call.OK, "gzip"},
		"plain text that says gzip":   {[]string{"gzip"}, object, call.OK, call.UpstreamBadResponse, "gzip"},
		"gzip, cut short":             {[]string{"gzip"}, packed[:len(packed)-6], call.OK, call.UpstreamBadResponse, "gzip"},
		"gzip and something after it": {[]string{"gzip"}, packed + "tail", call.OK, call.UpstreamBadResponse, "gzip"},
		"gzip of nothing":             {[]string{"gzip"}, "", call.OK, call.UpstreamBadResponse, "gzip"},
		"gzip that does not say so":   {nil, packed, call.OK, call.UpstreamBadResponse, ""},
		"gzip of gzip":                {[]string{"gzip, gzip"}, gzipped(t, packed), call.OK, call.UpstreamBadResponse, "gzip, gzip"},
		"two headers":                 {[]string{"gzip", "br"}, packed, call.OK, call.UpstreamBadResponse, "gzip, br"},
		"identity and gzip":           {[]string{"identity", "gzip"}, packed, call.OK, call.UpstreamBadResponse, "identity, gzip"},
		"deflate":                     {[]string{"deflate"}, deflated(t, object), call.OK, call.UpstreamBadResponse, "deflate"},
		"br":                          {[]string{"br"}, object, call.OK, call.UpstreamBadResponse, "br"},
		"zstd":                        {[]string{"zstd"}, object, call.OK, call.UpstreamBadResponse, "zstd"},
		"a word that is none":         {[]string{"g zip"}, packed, call.UpstreamBadResponse, call.UpstreamBadResponse, ""},
		"an empty word":               {[]string{"gzip,,br"}, packed, call.UpstreamBadResponse, call.UpstreamBadResponse, ""},
		"an empty header":             {[]string{""}, object, call.UpstreamBadResponse, call.UpstreamBadResponse, ""},
		"letters outside ASCII":       {[]string{"gzíp"}, packed, call.UpstreamBadResponse, call.UpstreamBadResponse, ""},
		"more than anybody packs":     {[]string{strings.Repeat("gzip,", 20) + "br"}, packed, call.UpstreamBadResponse, call.UpstreamBadResponse, ""},
		"a bomb":                      {[]string{"gzip"}, gzipped(t, strings.Repeat(" ", unpackedBytesMax+1)), call.UpstreamTooLarge, call.UpstreamTooLarge, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Encoding"] = tt.encodings
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, tt.body)
			})
			got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, nil)))
			if got.Reason != tt.unchecked || (got.Reason == call.OK && (string(got.Body) != tt.body || got.Header.Get("Content-Encoding") != tt.label)) {
				t.Errorf("unchecked: %q, %d of %d bytes as %q (%v)", got.Reason, len(got.Body), len(tt.body), got.Header.Get("Content-Encoding"), got.Err)
			}
			got = development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, promising(`{"type":"object"}`))))
			if got.Reason != tt.checked {
				t.Errorf("checked: %q, want %q (%v)", got.Reason, tt.checked, got.Err)
			}
		})
	}
}

// The packed body is within what its listing allows; unpacked it is not, and that is no broken promise about its form.
func TestClient_Ask_ABombIsTooLargeAndNotUnpacked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		length int
		want   call.Reason
	}{
		"as large as may be": {unpackedBytesMax, call.OK},
		"a byte larger":      {unpackedBytesMax + 1, call.UpstreamTooLarge},
		"many times so":      {16 << 20, call.UpstreamTooLarge},
	} {
		packed := gzipped(t, `{"a":"`+strings.Repeat("x", tt.length-len(`{"a":""}`))+`"}`)
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, packed)
		})
		change := func(e *catalog.Endpoint) { promising(`{"type":"object"}`)(e); e.MaxResponseBytes = 1 << 20 }
		if got := development().Ask(t.Context(), requestTo(serviceAt(t, server.URL, change))); got.Reason != tt.want {
			t.Errorf("%s: %q, want %q (%v)", name, got.Reason, tt.want, got.Err)
		}
	}
}

func TestRequestHeader_LabelsABodyThatNobodyHereReads(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		given []string
		want  string
	}{
		"none": {nil, ""}, "gzip": {[]string{"gzip"}, "gzip"}, "no encoding, by name": {[]string{"identity"}, ""},
		"two headers": {[]string{"gzip", "br"}, "gzip, br"}, "a line break": {[]string{"gzip\r\nX: y"}, ""},
	} {
		r := requestTo(serviceAt(t, "http://127.0.0.1", func(e *catalog.Endpoint) { e.Method = "POST" }))
		r.Header = http.Header{"Content-Encoding": tt.given}
		if got := requestHeader(r, time.Now()).Get("Content-Encoding"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
