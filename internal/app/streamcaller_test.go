package app_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/delivery"
)

// A pouring service sends without end, and gives a caller up that takes nothing for patience. It says when it was last rid of something.
type pouring struct {
	patience time.Duration // zero: it waits for ever
	sent     atomic.Int64  // when, in nanoseconds
	ended    chan struct{}
}

func newPouring(patience time.Duration) *pouring {
	return &pouring{patience: patience, ended: make(chan struct{})}
}

func (p *pouring) work(rw http.ResponseWriter, r *http.Request) {
	defer close(p.ended)
	rw.Header().Set("Content-Type", "text/event-stream")
	piece, to := strings.Repeat("a", 32<<10), http.NewResponseController(rw)
	for r.Context().Err() == nil {
		if p.patience > 0 {
			_ = to.SetWriteDeadline(time.Now().Add(p.patience))
		}
		if _, err := io.WriteString(rw, piece); err != nil {
			panic(http.ErrAbortHandler)
		}
		p.sent.Store(time.Now().UnixNano())
	}
}

// A service may give up a connection that takes nothing. Whoever stalls could strike it at will if that counted against it.
func TestStream_ACallerThatStallsUntilTheServiceHangsUpStrikesNobody(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	p := newPouring(time.Second)
	s := w.List(t, "stalled", p.work, streaming(nil))
	f, _ := payStream(t, w, s)
	<-p.ended
	<-time.After(2 * time.Second) // more than two seconds in one write
	wantBroken(t, f)
	w.AwaitBooks(t, f.Call(), apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "caller_stalled", Refund: "confirmed"})
	var rests int
	if err := w.DB.QueryRow(t.Context(), `SELECT count(*) FROM cooldowns`).Scan(&rests); err != nil || rests != 0 || len(w.OpenStrikes(t, "stalled")) != 0 {
		t.Errorf("%d rests (%v), strikes %v", rests, err, w.OpenStrikes(t, "stalled"))
	}
	if record := w.Record(t, f.Call()); record.JSON["party"] != "caller" || record.JSON["charged"] != false {
		t.Errorf("the call is %s", record.Body)
	}
}

// Headers are no delivery: who gives up on a service that hangs behind them has its money back.
func TestStream_AServiceThatSendsHeadersAndHangsIsNotPaidWhenItsCallerLeaves(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "hollow", apptest.Sends(make(chan string), false), streaming(map[string]any{"idle_timeout_ms": 1000}))
	f, _ := payStream(t, w, s)
	_ = f.Body.Close()
	w.AwaitBooks(t, f.Call(), apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "upstream_timeout", Refund: "confirmed"})
}

func TestStream_ACallerThatReadsTwiceAsFastAsItHasToIsNotLeft(t *testing.T) {
	t.Parallel()
	const rate, bytes = 512 << 10, 6 << 20
	w := apptest.StartWith(t, apptest.Setup{Options: []app.Option{app.WithStreamLimits(delivery.StreamLimits{Rate: rate, Slow: 500 * time.Millisecond})}})
	s := w.List(t, "steady", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, strings.Repeat("a", bytes))
	}, streaming(nil))
	f, _ := payStream(t, w, s)
	const piece = 64 << 10
	tick := time.NewTicker(piece * time.Second / (2 * rate))
	defer tick.Stop()
	for read := 0; read < bytes; read += piece {
		<-tick.C
		if _, err := io.CopyN(io.Discard, f.Body, piece); err != nil {
			t.Fatalf("after %d bytes: %v", read, err)
		}
	}
	if rest, err := f.Rest(); rest != "" || err != nil || f.Trailer.Get("Market-Outcome") != "served" {
		t.Errorf("the end: %d bytes, %v, trailer %v", len(rest), err, f.Trailer)
	}
}

func TestStream_AStopEndsOneWhoseCallerReadsNothing(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	p := newPouring(0)
	s := w.List(t, "stuck", p.work, streaming(nil))
	f, _ := payStream(t, w, s)
	apptest.Eventually(t, "nothing moves any more", func() bool {
		last := p.sent.Load()
		return last != 0 && time.Since(time.Unix(0, last)) > 500*time.Millisecond
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second+300*time.Millisecond) // as in TestStream_AStopEndsItAndGivesTheMoneyBack
	defer cancel()
	if err := w.App.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := w.Books(t, f.Call()); got.State != "failed" || got.Reason != "interrupted" || got.Refund == "" {
		t.Errorf("the books say %+v, want it interrupted and the refund owed", got)
	}
}

func TestStream_WhereAsManyAreUnderWayAsWeCarryNobodyPaysForAnother(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Options: []app.Option{app.WithStreamLimits(delivery.StreamLimits{AtOnce: 1})}})
	pieces := make(chan string)
	s := w.List(t, "popular", apptest.Sends(pieces, false), streaming(nil))
	other := w.List(t, "plain", apptest.Works, nil)
	f, _ := payStream(t, w, s)
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Terms(t, s, 120))
	wantFull(t, "an unpaid request", w.Send(t, apptest.Ask(s.URL), ""), 1)
	wantFull(t, "a paid one", w.Send(t, apptest.Ask(s.URL), header), 1)
	expect(t, "a trial", w.Send(t, apptest.Ask(s.URL).Trial(), ""), http.StatusServiceUnavailable, "over_capacity")
	if a := w.Send(t, apptest.Ask(other.URL), ""); a.Status != http.StatusPaymentRequired {
		t.Errorf("what is no stream: %d %s", a.Status, a.Body)
	}
	close(pieces)
	if _, err := f.Rest(); err != nil {
		t.Error(err)
	}
	next := w.Stream(t, apptest.Ask(s.URL), header)
	if rest, err := next.Rest(); next.StatusCode != http.StatusOK || err != nil {
		t.Errorf("afterwards: %d %q, %v", next.StatusCode, rest, err)
	}
}
