package upstream

import (
	"bytes"
	"crypto/tls"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"market/internal/call"
	"market/internal/catalog"
)

// A stream is one request that a test's HTTP/2 server has read, and the means to answer it frame by frame.
type stream struct {
	*http2.Framer
	conn *tls.Conn
	id   uint32
}

// head writes the header of an answer, which ends with it or not.
func (s *stream) head(end bool, fields ...string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
}

func (s *stream) ok() { s.head(true, ":status", "200") }

// serveHTTP2 runs answer for each request; it returns the URL and a count of the requests.
func serveHTTP2(t *testing.T, certificate tls.Certificate, answer func(*stream)) (string, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}}
	url := acceptTLS(t, config, func(c *tls.Conn) {
		var preface [len(http2.ClientPreface)]byte
		if _, err := io.ReadFull(c, preface[:]); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = f.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				asked.Add(1)
				answer(&stream{f, c, frame.StreamID})
			}
		}
	})
	return url, &asked
}

func TestClient_Ask_ClassifiesWhatAnHTTP2ServerDoes(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	certificate := authority.issue(t, publicHost, nil)
	reset := func(code http2.ErrCode) func(*stream) {
		return func(s *stream) { _ = s.WriteRSTStream(s.id, code) }
	}
	goAway := func(last uint32, code http2.ErrCode) func(*stream) {
		return func(s *stream) { _ = s.WriteGoAway(last, code, []byte("<b>debug</b>")); _ = s.conn.Close() }
	}
	tests := map[string]struct {
		answer func(*stream)
		want   call.Reason
	}{
		"an answer": {(*stream).ok, call.OK},
		"an answer in two pieces": {func(s *stream) {
			s.head(false, ":status", "200", "content-length", "4")
			_ = s.WriteData(s.id, false, []byte("an"))
			_ = s.WriteData(s.id, true, []byte("sw"))
		}, call.OK},
		"a hint before the answer": {func(s *stream) { s.head(false, ":status", "103", "link", "</a>"); s.ok() }, call.OK},
		"503":                      {func(s *stream) { s.head(true, ":status", "503") }, call.Upstream5xx},
		"an answer, then no more wish for the request": {func(s *stream) { s.ok(); _ = s.WriteRSTStream(s.id, http2.ErrCodeNo) }, call.OK},

		"a stream that is refused":             {reset(http2.ErrCodeRefusedStream), call.UpstreamUnreachable},
		"a stream that is reset":               {reset(http2.ErrCodeInternal), call.UpstreamUnreachable},
		"a stream that is cancelled":           {reset(http2.ErrCodeCancel), call.UpstreamUnreachable},
		"a stream that broke the protocol":     {reset(http2.ErrCodeProtocol), call.UpstreamUnreachable},
		"a stream that should calm down":       {reset(http2.ErrCodeEnhanceYourCalm), call.UpstreamUnreachable},
		"a stream that HTTP/1.1 is wanted for": {reset(http2.ErrCodeHTTP11Required), call.UpstreamUnreachable},
		"a server that goes and did not look":  {goAway(0, http2.ErrCodeNo), call.UpstreamUnreachable},
		"a server that goes and may have":      {goAway(1, http2.ErrCodeNo), call.UpstreamUnreachable},
		"a server that goes in anger":          {goAway(0, http2.ErrCodeEnhanceYourCalm), call.UpstreamUnreachable},
		"a server that hangs up":               {func(s *stream) { _ = s.conn.Close() }, call.UpstreamUnreachable},
		"HTTP/1 where HTTP/2 was agreed":       {func(s *stream) { _, _ = io.WriteString(s.conn, "HTTP/1.1 400 Bad Request\r\n\r\n") }, call.UpstreamUnreachable},
		"a frame that is too large":            {func(s *stream) { _, _ = s.conn.Write([]byte("\xff\xff\xff\x00\x00\x00\x00\x00\x01")) }, call.UpstreamUnreachable},
		"data before a header":                 {func(s *stream) { _ = s.WriteData(s.id, true, []byte("x")) }, call.UpstreamUnreachable},
		"a header in another compression": {func(s *stream) {
			_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: []byte("\xff\xff\xff\xff\xff\xff"), EndHeaders: true})
		}, call.UpstreamUnreachable},
		"a header without a status": {func(s *stream) { s.head(true, "x", "y") }, call.UpstreamBadResponse},
		"a status that is none":     {func(s *stream) { s.head(true, ":status", "ok") }, call.UpstreamBadResponse},
		"a header in capitals":      {func(s *stream) { s.head(true, ":status", "200", "X-Upper", "y") }, call.UpstreamUnreachable},
		"hints without end":         {func(s *stream) { hintsWithoutEnd(s) }, call.UpstreamBadResponse},
		"a header without end":      {func(s *stream) { headerWithoutEnd(s) }, call.UpstreamUnreachable},

		"a stream that is reset in the answer": {func(s *stream) {
			s.head(false, ":status", "200")
			_ = s.WriteData(s.id, false, []byte("half"))
			_ = s.WriteRSTStream(s.id, http2.ErrCodeInternal)
		}, call.UpstreamBadResponse},
		"a server that hangs up in the answer": {func(s *stream) {
			s.head(false, ":status", "200")
			_ = s.WriteData(s.id, false, []byte("half"))
			_ = s.conn.Close()
		}, call.UpstreamBadResponse},
		"a server that goes in the answer": {func(s *stream) {
			s.head(false, ":status", "200")
			_ = s.WriteGoAway(0, http2.ErrCodeInternal, nil)
			_ = s.conn.Close()
		}, call.UpstreamBadResponse},
		"less than was announced": {func(s *stream) {
			s.head(false, ":status", "200", "content-length", "100")
			_ = s.WriteData(s.id, true, []byte("half"))
		}, call.UpstreamBadResponse},
		"more than was announced": {func(s *stream) {
			s.head(false, ":status", "200", "content-length", "2")
			_ = s.WriteData(s.id, true, []byte("more"))
		}, call.UpstreamBadResponse},
		"silence":               {func(*stream) {}, call.UpstreamTimeout},
		"silence in the answer": {func(s *stream) { s.head(false, ":status", "200") }, call.UpstreamTimeout},
	}
	for name, tt := range tests {
		for _, method := range []string{"GET", "PUT", "POST"} {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				url, asked := serveHTTP2(t, certificate, tt.answer)
				_, resolver := startDNS(t, always(0, publicAddress))
				c := redirected(authority.trusting(New(Options{Resolver: resolver})), url)
				t.Cleanup(c.Close)
				r := requestTo(serviceAt(t, publicURL, func(e *catalog.Endpoint) {
					e.Method = method
					if tt.want == call.UpstreamTimeout {
						e.Timeout = 200 * time.Millisecond
					}
				}))
				if method == "POST" {
					r.Body = []byte(`{"a":1}`)
				}
				got := c.Ask(t.Context(), r)
				if got.Reason != tt.want {
					t.Errorf("reason = %q, want %q (%s: %v)", got.Reason, tt.want, got.Detail, got.Err)
				}
				if strings.Contains(got.Detail, "debug") {
					t.Errorf("the public text has words of the service: %s", got.Detail)
				}
				if asked.Load() != 1 {
					t.Errorf("the service was asked %d times, want 1", asked.Load())
				}
			})
		}
	}
}

func hintsWithoutEnd(s *stream) {
	s.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	hint := strings.Repeat("</a>; rel=preload, ", 50)
	for range 10_000 {
		before := *s
		before.head(false, ":status", "103", "link", hint)
		if _, err := s.conn.Write(nil); err != nil {
			return
		}
	}
}

func headerWithoutEnd(s *stream) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	for range 64 {
		_ = encoder.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("a", 4<<10), Sensitive: true})
	}
	rest := block.Bytes()
	_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: rest[:16<<10]})
	for rest = rest[16<<10:]; len(rest) > 0; {
		n := min(len(rest), 16<<10)
		if s.WriteContinuation(s.id, n == len(rest), rest[:n]) != nil {
			return
		}
		rest = rest[n:]
	}
}
