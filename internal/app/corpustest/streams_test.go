package corpustest

import (
	"io"
	"net/http"
	"strings"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
)

const event = "data: 1\n\n"

// streaming is the listing of a stream, with more where it is given.
func streaming(member string, value any) map[string]any {
	return map[string]any{"stream": true, member: value}
}

// stream opens a paid stream of pieces, and has its call judged.
func (s *stage) stream(pieces <-chan string, broken bool) *apptest.Flowing {
	s.Helper()
	s.service.Do(apptest.Sends(pieces, broken))
	return s.flow()
}

func (s *stage) flow() *apptest.Flowing {
	s.Helper()
	f := s.Stream(s, s.who.from(s.ask), s.signed())
	s.last, s.call = apptest.Answer{Status: f.StatusCode, Header: f.Header}, f.Call()
	return f
}

// whole reads a stream to its end.
func (s *stage) whole(f *apptest.Flowing) {
	s.Helper()
	if _, err := f.Rest(); err != nil || f.Trailer.Get("Market-Outcome") != "served" {
		s.Errorf("the stream ended with %v and the trailer %v", err, f.Trailer)
	}
	s.recorded()
}

// broken reads a stream to where it breaks.
func (s *stage) broken(f *apptest.Flowing) {
	s.Helper()
	if _, err := f.Rest(); err == nil {
		s.Error("the stream ended as if it were whole")
	}
	s.recorded()
}

// streamRows are calls whose answer comes piece by piece.
func streamRows() []row {
	begun := func(s *stage, broken bool) (pieces chan string, f *apptest.Flowing) {
		pieces = make(chan string, 4)
		pieces <- event
		f = s.stream(pieces, broken)
		f.Next(event)
		return pieces, f
	}
	return []row{
		{name: "a stream ends well", listing: streaming("idle_timeout_ms", 60_000), want: served, play: func(s *stage) {
			pieces, f := begun(s, false)
			close(pieces)
			s.whole(f)
		}},
		{name: "a stream breaks off (B93)", listing: streaming("idle_timeout_ms", 60_000), want: fails(call.UpstreamBadResponse).with(200), play: func(s *stage) {
			pieces, f := begun(s, true)
			close(pieces)
			s.broken(f)
		}},
		{name: "a stream falls silent", listing: streaming("idle_timeout_ms", 2000), want: fails(call.UpstreamTimeout).with(200), play: func(s *stage) {
			_, f := begun(s, false)
			s.broken(f)
		}},
		{name: "a stream is longer than its listing allows", listing: streaming("max_response_bytes", len(event)), want: flagged(call.UpstreamTooLarge).with(200),
			play: func(s *stage) {
				pieces, f := begun(s, false)
				pieces <- event
				s.broken(f)
			}},
		{name: "a caller leaves in the middle of a stream", listing: streaming("idle_timeout_ms", 60_000),
			want: want{outcome: call.Served, reason: call.CallerLeft, party: call.Caller, status: 200, paid: 1}, play: func(s *stage) {
				_, f := begun(s, false)
				_ = f.Body.Close()
				s.recorded()
			}},
		{name: "a caller takes nothing of a stream until its service hangs up", listing: streaming("idle_timeout_ms", 60_000),
			want: want{outcome: call.Failed, reason: call.CallerStalled, party: call.Caller, status: 200, paid: 1, back: 1}, play: func(s *stage) {
				ended := make(chan struct{})
				s.service.Do(func(rw http.ResponseWriter, r *http.Request) {
					defer close(ended)
					pour(rw, r)
				})
				f := s.flow()
				<-ended
				<-time.After(2 * time.Second) // more than two seconds in one write
				s.broken(f)
			}},
	}
}

// pour sends without end, and gives a caller up that takes nothing for a second.
func pour(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	piece, to := strings.Repeat("a", 32<<10), http.NewResponseController(rw)
	for r.Context().Err() == nil {
		_ = to.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := io.WriteString(rw, piece); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
