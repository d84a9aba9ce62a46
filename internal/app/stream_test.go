package app_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/delivery"
	"market/internal/payment"
)

const event = "data: 1\n\n"

// streaming is the listing of a stream, with more where it is given.
func streaming(more map[string]any) map[string]any {
	listing := map[string]any{"stream": true, "trial_calls_per_day": 5}
	for member, value := range more {
		listing[member] = value
	}
	return listing
}

// payStream opens a paid stream.
func payStream(t *testing.T, w *apptest.World, s *apptest.Service) (f *apptest.Flowing, header string) {
	t.Helper()
	header = w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))
	return w.Stream(t, apptest.Ask(s.URL), header), header
}

// wantBroken checks that a stream ended so that its client sees an error, and nothing of an outcome.
func wantBroken(t *testing.T, f *apptest.Flowing) {
	t.Helper()
	if rest, err := f.Rest(); err == nil || f.Trailer.Get("Market-Outcome") != "" {
		t.Errorf("after %q the stream ended as if it were whole, with the trailer %v", rest, f.Trailer)
	}
}

// B105
func TestStream_EachEventReachesTheCallerBeforeTheServiceSendsTheNext(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	pieces := make(chan string)
	s := w.List(t, "ticker", apptest.Sends(pieces, false), streaming(nil))
	terms := w.Challenge(t, apptest.Ask(s.URL))
	if !strings.Contains(string(terms.Resource), "not kept") {
		t.Errorf("the terms %s do not say that a stream is not kept", terms.Resource)
	}
	f, header := payStream(t, w, s)
	if f.StatusCode != http.StatusOK || f.Call() == "" || f.Header.Get("Content-Type") != "text/event-stream" || f.Header.Get("Market-Outcome") != "" ||
		f.Header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("before the first event: %d %v", f.StatusCode, f.Header)
	}
	if settled, err := payment.DecodeResponse(f.Header.Get("PAYMENT-RESPONSE")); err != nil || !settled.Success {
		t.Errorf("before the first event the settlement is %+v, %v", settled, err)
	}
	for range 3 {
		pieces <- event // the service waits here until the caller has the event before
		f.Next(event)
	}
	if record := w.Record(t, f.Call()); record.JSON["state"] != "asked" || record.JSON["charged"] != "pending" {
		t.Errorf("while it lasts the call is %s", record.Body)
	}
	expect(t, "the same payment meanwhile", w.Send(t, apptest.Ask(s.URL), header), http.StatusConflict, "in_progress")
	close(pieces)
	if rest, err := f.Rest(); rest != "" || err != nil || f.Trailer.Get("Market-Outcome") != "served" {
		t.Errorf("the end: %q, %v, trailer %v", rest, err, f.Trailer)
	}
	record := w.Record(t, f.Call())
	if record.JSON["outcome"] != "served" || record.JSON["reason"] != "ok" || record.JSON["charged"] != true || record.JSON["receipt"] == nil {
		t.Errorf("afterwards the call is %s", record.Body)
	}
	again := w.Send(t, apptest.Ask(s.URL), header)
	expect(t, "the same payment afterwards", again, http.StatusGone, "answer_expired")
	if !strings.Contains(again.JSON["detail"].(string), "streamed") || again.Header.Get("PAYMENT-RESPONSE") == "" || s.Asked() != 1 {
		t.Errorf("the same payment afterwards: %v, %s; the service was asked %d times", again.Header, again.Body, s.Asked())
	}
	var kept int
	if err := w.DB.QueryRow(t.Context(), `SELECT count(*) FROM answers`).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("%d answers are kept (%v)", kept, err)
	}
	wantMoved(t, w, 1, 0)
}

// B93: half an answer never looks whole, and the money goes back.
func TestStream_OneThatFailsIsBrokenAndRefunded(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	for slug, tt := range map[string]struct {
		listing map[string]any
		end     func(chan string)
		reason  string
		strikes int
	}{
		"breaks":   {nil, func(pieces chan string) { close(pieces) }, "upstream_bad_response", 1},
		"idles":    {map[string]any{"idle_timeout_ms": 300}, func(chan string) {}, "upstream_timeout", 1},
		"overruns": {map[string]any{"max_response_bytes": len(event)}, func(pieces chan string) { pieces <- event }, "upstream_too_large", 0},
	} {
		t.Run(slug, func(t *testing.T) {
			t.Parallel()
			pieces := make(chan string)
			s := w.List(t, slug, apptest.Sends(pieces, true), streaming(tt.listing))
			f, header := payStream(t, w, s)
			pieces <- event
			f.Next(event)
			tt.end(pieces)
			wantBroken(t, f)
			w.AwaitBooks(t, f.Call(), apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: tt.reason, Refund: "confirmed"})
			if n := len(w.OpenStrikes(t, slug)); n != tt.strikes {
				t.Errorf("%d strikes, want %d", n, tt.strikes)
			}
			again := w.Send(t, apptest.Ask(s.URL), header)
			if again.Code() != tt.reason || again.Refund("state") != "confirmed" || again.JSON["receipt"] == nil {
				t.Errorf("the same payment afterwards: %d %s", again.Status, again.Body)
			}
		})
	}
}

func TestStream_WhatFailsBeforeItBeginsIsAnsweredLikeAnyOther(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "fails", apptest.Fails, streaming(nil))
	answer := w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL))
	expect(t, "a service that fails", answer, http.StatusBadGateway, "upstream_5xx")
	if answer.Outcome() != "failed" || answer.Refund("state") != "owed" {
		t.Errorf("outcome %q, %s", answer.Outcome(), answer.Body)
	}
	empty := w.List(t, "empty", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }, streaming(nil))
	answer = w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(empty.URL)), apptest.Ask(empty.URL))
	if answer.Status != http.StatusNoContent || answer.Outcome() != "served" {
		t.Errorf("an answer without a body: %d, %v", answer.Status, answer.Header)
	}
}

// Whoever leaves pays, and says nothing about the service: a strike that stands goes on standing.
func TestStream_ACallerThatLeavesIsChargedAndProvesNothing(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	pieces, stopped := make(chan string), make(chan struct{})
	s := w.List(t, "left", apptest.Fails, streaming(nil))
	terms := w.Challenge(t, apptest.Ask(s.URL))
	w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, apptest.Ask(s.URL))
	w.Shift(t, 2*time.Minute) // past the rest
	s.Do(func(rw http.ResponseWriter, r *http.Request) {
		defer close(stopped)
		apptest.Sends(pieces, false)(rw, r)
	})
	f := w.Stream(t, apptest.Ask(s.URL), w.Sign(t, w.Payer(t, apptest.PriceUnits), terms))
	pieces <- event
	f.Next(event)
	_ = f.Body.Close() // while the service says nothing
	<-stopped
	w.AwaitBooks(t, f.Call(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "caller_left"})
	record := w.Record(t, f.Call())
	if record.JSON["charged"] != true || record.JSON["party"] != "caller" || record.JSON["receipt"] == nil {
		t.Errorf("the call is %s", record.Body)
	}
	if n := len(w.OpenStrikes(t, "left")); n != 1 {
		t.Errorf("%d strikes stand, want the one from before", n)
	}
}

func TestStream_ACallerThatReadsNothingIsLeftAloneAndCharged(t *testing.T) {
	t.Parallel()
	limits := delivery.StreamLimits{Rate: 1 << 20, Slow: 300 * time.Millisecond}
	w := apptest.StartWith(t, apptest.Setup{Options: []app.Option{app.WithStreamLimits(limits)}})
	s := w.List(t, "unread", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		piece := strings.Repeat("a", 64<<10)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(rw, piece)
		}
	}, streaming(nil))
	f, _ := payStream(t, w, s)
	w.AwaitBooks(t, f.Call(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "caller_left"})
	if detail, _ := w.Record(t, f.Call()).JSON["detail"].(string); !strings.Contains(detail, "too slowly") {
		t.Errorf("the record says %q", detail)
	}
	wantBroken(t, f)
}

func TestStream_AStopEndsItAndGivesTheMoneyBack(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	pieces := make(chan string)
	s := w.List(t, "stopped", apptest.Sends(pieces, false), streaming(nil))
	f, _ := payStream(t, w, s)
	pieces <- event
	f.Next(event)
	// So little more than what streams leave to the rest of the stop.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second+300*time.Millisecond)
	defer cancel()
	if err := w.App.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	wantBroken(t, f)
	if got := w.Books(t, f.Call()); got.State != "failed" || got.Reason != "interrupted" || got.Refund == "" {
		t.Errorf("the books say %+v, want it interrupted and the refund owed", got)
	}
}

// A stream may last as long as its listing says, and its caller may hold it up for as long again as we allow: until then nobody else ends its call.
func TestStream_OneThatDiesWithItsProcessIsRefundedOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	pieces := make(chan string)
	s := w.List(t, "killed", apptest.Sends(pieces, false), streaming(map[string]any{"timeout_ms": 600_000}))
	f, _ := payStream(t, w, s)
	pieces <- event
	f.Next(event)
	w.App.Kill()
	wantBroken(t, f)
	other := w.Replica(t)
	other.Shift(t, 15*time.Minute)
	var leased bool
	err := other.DB.QueryRow(t.Context(), `SELECT state = 'asked' AND lease_until > market_now() FROM calls WHERE id = $1`, f.Call()).Scan(&leased)
	if err != nil || !leased {
		t.Errorf("while it may last, and its caller may hold it up, its call is up for the sweeper (%v)", err)
	}
	other.Shift(t, time.Minute)
	apptest.Eventually(t, "the stream that died is interrupted and its refund owed", func() bool {
		got := other.Books(t, f.Call())
		return got.State == "failed" && got.Reason == "interrupted" && got.Refund != ""
	})
}

func TestStream_ATrialStreamsToo(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	pieces := make(chan string)
	s := w.List(t, "tried", apptest.Sends(pieces, false), streaming(nil))
	f := w.Stream(t, apptest.Ask(s.URL).Trial(), "")
	pieces <- event
	f.Next(event)
	close(pieces)
	if rest, err := f.Rest(); rest != "" || err != nil || f.Trailer.Get("Market-Outcome") != "served" || f.Header.Get("PAYMENT-RESPONSE") != "" {
		t.Errorf("the end: %q, %v, trailer %v, header %v", rest, err, f.Trailer, f.Header)
	}
	if record := w.Record(t, f.Call()); record.JSON["trial"] != true || record.JSON["outcome"] != "served" || record.JSON["charged"] != false {
		t.Errorf("the call is %s", record.Body)
	}
}

// HTTP/1.0 has no chunks: the end of its connection is the end of its answer, also where that is only half.
func TestStream_ACallerOfHTTP10IsTurnedDownBeforeItPays(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "old", apptest.Works, streaming(nil))
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))
	for name, paid := range map[string]string{"without a payment": "", "with one": "PAYMENT-SIGNATURE: " + header + "\r\n"} {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		request := "POST /s/old/work HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 7\r\n" + paid + "\r\n" + `{"n":1}`
		if _, err := io.WriteString(connection, request); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_, _ = response.Body.Close(), connection.Close()
		if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(body), "HTTP/1.1 or later") {
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
		}
	}
	if w.Rows(t).Calls != 0 || s.Asked() != 0 {
		t.Errorf("%d claims, the service was asked %d times", w.Rows(t).Calls, s.Asked())
	}
}
