package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"market/internal/call"
	"market/internal/catalog"
)

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func TestClient_Ask_KeepsWhatCameBackOfAnAnswerThatFailed(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","required":["a"]}`
	head := func(status, more string, length int) string {
		return "HTTP/1.1 " + status + "\r\n" + more + "Content-Length: " + strconv.Itoa(length) + "\r\n\r\n"
	}
	whole := func(status, more, body string) string { return head(status, more, len(body)) + body }
	packed := gzipped(t, "out of memory")
	long := strings.Repeat("é", 50<<10) // 100 KB
	for name, tt := range map[string]struct {
		answer  string
		change  func(*catalog.Endpoint)
		want    call.Said // without SHA256
		hashed  string    // what SHA256 is of
		because call.Reason
	}{
		"a text":               {whole("500 No", "Content-Type: text/plain\r\n", "oops"), nil, call.Said{ContentType: "text/plain", Snippet: "oops", Bytes: 4}, "oops", call.Upstream5xx},
		"no body":              {whole("500 No", "", ""), nil, call.Said{}, "", call.Upstream5xx},
		"bytes":                {whole("500 No", "", "\xff\xfe\x00"), nil, call.Said{Bytes: 3}, "\xff\xfe\x00", call.Upstream5xx},
		"a text with a zero":   {whole("500 No", "", "a\x00b"), nil, call.Said{Bytes: 3}, "a\x00b", call.Upstream5xx},
		"control characters":   {whole("500 No", "", "a\x1b[31m\r\nb\u202e\tc"), nil, call.Said{Snippet: "a\uFFFD[31m\nb\uFFFD\tc", Bytes: 14}, "a\x1b[31m\r\nb\u202e\tc", call.Upstream5xx},
		"packed":               {whole("500 No", "Content-Encoding: gzip\r\n", packed), nil, call.Said{Bytes: int64(len(packed))}, packed, call.Upstream5xx},
		"an odd type":          {whole("500 No", "Content-Type: "+strings.Repeat("x", 200)+"\r\n", "a"), nil, call.Said{ContentType: strings.Repeat("x", 100), Snippet: "a", Bytes: 1}, "a", call.Upstream5xx},
		"a refusal":            {whole("400 No", "", "bad city"), nil, call.Said{Snippet: "bad city", Bytes: 8}, "bad city", call.RejectedByService},
		"a throttle":           {whole("429 No", "", "slower"), nil, call.Said{Snippet: "slower", Bytes: 6}, "slower", call.UpstreamThrottled},
		"a redirect":           {whole("302 Found", "", "there"), nil, call.Said{Snippet: "there", Bytes: 5}, "there", call.UpstreamRedirect},
		"as long as is read":   {whole("500 No", "", long[:64<<10]), nil, call.Said{Snippet: long[:1024], Bytes: 64 << 10}, long[:64<<10], call.Upstream5xx},
		"longer than is read":  {whole("500 No", "", long), nil, call.Said{Snippet: long[:1024], Bytes: 64<<10 + 1, Cut: true}, long[:64<<10], call.Upstream5xx},
		"cut inside a letter":  {whole("500 No", "", "a"+long), nil, call.Said{Snippet: "a" + long[:1022], Bytes: 64<<10 + 1, Cut: true}, "a" + long[:64<<10-1], call.Upstream5xx},
		"cut short":            {head("500 No", "", 100) + "half", nil, call.Said{Snippet: "half", Bytes: 4, Cut: true}, "half", call.Upstream5xx},
		"served and cut short": {head("200 OK", "", 100) + "half", nil, call.Said{Snippet: "half", Bytes: 4, Cut: true}, "half", call.UpstreamBadResponse},
		"served and not as promised": {whole("200 OK", "", `{"b":1}`), promising(object), call.Said{Snippet: `{"b":1}`, Bytes: 7}, `{"b":1}`,
			call.UpstreamBadResponse},
		"served and too large": {whole("200 OK", "", strings.Repeat("a", 1025)), nil, call.Said{Snippet: strings.Repeat("a", 1024), Bytes: 1025},
			strings.Repeat("a", 1025), call.UpstreamTooLarge},
		"served and too large without a length": {"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("a", 2000), nil,
			call.Said{Snippet: strings.Repeat("a", 1024), Bytes: 1025, Cut: true}, strings.Repeat("a", 1025), call.UpstreamTooLarge},
		"an event stream": {whole("200 OK", "Content-Type: text/event-stream\r\n", "data: a\n\n"), nil,
			call.Said{ContentType: "text/event-stream", Snippet: "data: a\n\n", Bytes: 9}, "data: a\n\n", call.UpstreamBadResponse},
		"an encoding without a name": {whole("200 OK", "Content-Encoding: gzip, \r\n", "abc"), nil, call.Said{Bytes: 3}, "abc", call.UpstreamBadResponse},
		"served":                     {whole("200 OK", "", "hello"), nil, call.Said{}, "", call.OK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := development().Ask(t.Context(), requestTo(serviceAt(t, accept(t, says(tt.answer)), tt.change)))
			if got.Reason != tt.because {
				t.Fatalf("%q, want %q (%v)", got.Reason, tt.because, got.Err)
			}
			hash := hex.EncodeToString(got.Said.SHA256)
			if want := digest(tt.hashed); tt.hashed != "" && hash != want || tt.hashed == "" && hash != "" {
				t.Errorf("the hash is %q, want that of %.20q", hash, tt.hashed)
			}
			got.Said.SHA256 = nil
			if got.Said.ContentType != tt.want.ContentType || got.Said.Snippet != tt.want.Snippet || got.Said.Bytes != tt.want.Bytes || got.Said.Cut != tt.want.Cut {
				t.Errorf("%+v\nwant %+v", got.Said, tt.want)
			}
		})
	}
}

func TestClient_Stream_KeepsWhatCameBackOfAStreamThatFailed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer  string
		snippet string
		because call.Reason
	}{
		"broken off":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n", "abcdef", call.UpstreamBadResponse},
		"too large":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n400\r\n" + strings.Repeat("d", 1024), "abc" + strings.Repeat("d", 1021), call.UpstreamTooLarge},
		"a failing head":    {"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", "oops", call.Upstream5xx},
		"without framing":   {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", "abc", call.UpstreamBadResponse},
		"announced too big": {"HTTP/1.1 200 OK\r\nContent-Length: 1025\r\n\r\nabc", "abc", call.UpstreamTooLarge},
		"nothing came":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", call.UpstreamBadResponse},
		"served":            {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "", call.OK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := &taker{}
			got := development().Stream(t.Context(), streamOf(t, accept(t, says(tt.answer)), nil), to)
			if got.Reason != tt.because || got.Said.Snippet != tt.snippet {
				t.Errorf("%q with %.40q, want %q with %.40q (%v)", got.Reason, got.Said.Snippet, tt.because, tt.snippet, got.Err)
			}
			if seen := to.body.String(); got.Streamed && got.Reason != call.OK && seen != "" && !strings.HasPrefix(tt.snippet, seen) {
				t.Errorf("the caller saw %.40q of %.40q", seen, tt.snippet)
			}
		})
	}
}

// A service that refuses with a head and no body would else hold its caller, its place and our memory for as long as its listing allows.
func TestClient_Ask_WaitsShortlyForTheBodyOfAnAnswerThatFailed(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"no byte":          "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\n",
		"some bytes":       "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf",
		"without a length": "HTTP/1.1 503 No\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := accept(t, func(c net.Conn) {
				says(answer)(c)
				_, _ = io.Copy(io.Discard, c) // until we hang up
			})
			s := serviceAt(t, url, func(e *catalog.Endpoint) { e.Timeout = time.Minute })
			started := time.Now()
			got := development().Ask(t.Context(), requestTo(s))
			if took := time.Since(started); got.Reason != call.Upstream5xx || took > 20*time.Second {
				t.Errorf("%q after %s (%v)", got.Reason, took, got.Err)
			}
			if want := strings.HasSuffix(answer, "half"); (got.Said.Snippet == "half") != want || !got.Said.Cut {
				t.Errorf("%+v, want half of it %v, and cut", got.Said, want)
			}
		})
	}
}

// How long a service took is said of it. What we waited for out of curiosity is ours.
func TestClient_LatencyOfAFailureEndsWithItsStatus(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a status":    "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf",
		"its framing": "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := accept(t, func(c net.Conn) {
				says(answer)(c)
				_, _ = io.Copy(io.Discard, c) // until we hang up
			})
			r := requestTo(serviceAt(t, url, func(e *catalog.Endpoint) { e.Timeout = time.Minute }))
			started := time.Now()
			asked := development().Ask(t.Context(), r)
			if took := time.Since(started); asked.Reason == call.OK || asked.Latency <= 0 || took-asked.Latency < tasteTime-100*time.Millisecond {
				t.Errorf("asked: %q with a latency of %s of %s (%v)", asked.Reason, asked.Latency, took, asked.Err)
			}
			started = time.Now()
			streamed := development().Stream(t.Context(), streamOf(t, url, func(e *catalog.Endpoint) { e.Timeout = time.Minute }), &taker{})
			if took := time.Since(started); streamed.Reason == call.OK || streamed.Latency <= 0 || took-streamed.Latency < tasteTime-100*time.Millisecond {
				t.Errorf("streamed: %q with a latency of %s of %s (%v)", streamed.Reason, streamed.Latency, took, streamed.Err)
			}
		})
	}
}

// What a caller is told of a refusal is waited for as before: a service may think about its words.
func TestClient_Ask_WaitsForTheWordsOfARefusal(t *testing.T) {
	t.Parallel()
	url := accept(t, func(c net.Conn) {
		says("HTTP/1.1 400 No\r\nContent-Length: 8\r\n\r\n")(c)
		timer := time.NewTimer(tasteTime + 200*time.Millisecond)
		defer timer.Stop()
		<-timer.C
		_, _ = io.WriteString(c, "bad city")
	})
	got := development().Ask(t.Context(), requestTo(serviceAt(t, url, nil)))
	if string(got.ServiceAnswer) != "bad city" || got.Said.Snippet != "bad city" {
		t.Errorf("%q and %q, want what it said (%v)", got.ServiceAnswer, got.Said.Snippet, got.Err)
	}
}

func TestClient_Ask_KeepsNoSecretOfAListingInWhatCameBack(t *testing.T) {
	t.Parallel()
	const token, quoted = "sk_live_0123456789", `quote"and\slash`
	basic := base64.StdEncoding.EncodeToString([]byte("user:pass-of-the-provider"))
	fill := strings.Repeat("é", 2<<10) // 4 KB
	for name, tt := range map[string]struct{ said, want string }{
		"a token":                        {"bad key " + token + "!", "bad key [hidden]!"},
		"in JSON":                        {`{"sent":{"authorization":"Bearer ` + token + `"}}`, `{"sent":{"authorization":"[hidden]"}}`},
		"with the escapes of JSON":       {`{"q":"quote\"and\\slash"}`, `{"q":"[hidden]"}`},
		"as .NET writes JSON":            {`{"q":"sk/abc\u002Bdefgh"}`, `{"q":"[hidden]"}`},
		"in the escapes of URLs":         {"?q=sk%2fabc%2bdefgh", "?q=[hidden]"},
		"in HTML":                        {"<p>sk&#x2F;abc&#43;defgh</p>", "<p>[hidden]</p>"},
		"in base64":                      {"bad login " + basic, "bad login [hidden]=="},
		"the pair in base64":             {"bad login user:pass-of-the-provider", "bad login [hidden]"},
		"our secret":                     {"mks_of-this-service is not mine", "[hidden] is not mine"},
		"across the end of the text":     {fill[:1016] + token + fill, fill[:1016] + "[hidden]"},
		"cut by the end of the text":     {fill[:1020] + token + fill, fill[:1020] + "[hid"},
		"cut by what is kept of it":      {strings.Repeat(token, 227) + token[:14] + fill, strings.Repeat("[hidden]", 128)},
		"the beginning of one, cut off":  {token[:10], token[:10]}, // the answer was over: it said no more than that
		"across the end of what is read": {strings.Repeat("a", 64<<10-4) + token, strings.Repeat("a", 1024)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/"+r.Header.Get("Market-Secret"))
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, tt.said)
			})
			s := keyed(serviceAt(t, server.URL, nil), "Authorization", "Bearer "+token, "X-Quoted", quoted, "X-Slashed", "sk/abc+defgh", "Proxy-Auth", "Basic "+basic)
			got := development().Ask(t.Context(), requestTo(s))
			if got.Reason != call.Upstream5xx || got.Said.Snippet != tt.want || got.Said.ContentType != "text/[hidden]" {
				t.Errorf("%q: %.1100q of type %q, want %.1100q (%v)", got.Reason, got.Said.Snippet, got.Said.ContentType, tt.want, got.Err)
			}
		})
	}
}

// A break in the middle of a secret leaves its beginning at the end of what came.
func TestClient_Ask_KeepsNoBeginningOfASecretThatBrokeOff(t *testing.T) {
	t.Parallel()
	const token = "sk_live_0123456789"
	for n := range len(token) {
		url := accept(t, says("HTTP/1.1 500 No\r\nContent-Length: 1000\r\n\r\nkey "+token[:n]))
		got := development().Ask(t.Context(), requestTo(keyed(serviceAt(t, url, nil), "X-Api-Key", token)))
		if got.Said.Snippet != "key " {
			t.Errorf("cut after %d letters: %q", n, got.Said.Snippet)
		}
	}
}

func TestAsText_IsShortAndWholeInUTF8WhateverItIsMadeOf(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{nil, {0xc3}, []byte("é"), bytes.Repeat([]byte{1}, 2000), []byte(strings.Repeat("a", 9) + "€€"), {'a', 0xff, 'b'}} {
		for most := range 12 {
			got := asText(b, most)
			if len(got) > most || !utf8.ValidString(got) {
				t.Errorf("%q cut to %d bytes: %q", b, most, got)
			}
		}
	}
}
