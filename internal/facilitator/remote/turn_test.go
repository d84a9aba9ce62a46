package remote

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/source"
)

func turnsAway(status int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", header)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// What an answer to a settlement says of the facilitator. What a single payment could provoke closes nothing: else a caller could close the network.
func TestClient_Settle_OnlyWhatTheFacilitatorSaysOfItselfClosesIt(t *testing.T) {
	t.Parallel()
	c := &Client{opts: Options{Source: source.Source{RunsOut: source.Prepaid, Shapes: []source.Shape{{Status: 403, Text: "plan"}}}}}
	for name, tt := range map[string]struct {
		status int
		header string
		body   string
		want   source.Result
	}{
		"it wants to be paid":                     {402, "", "", source.Refused},
		"it wants to be paid, in JSON":            {402, "", `{"error":"out of credit"}`, source.Refused},
		"too many requests":                       {429, "20", "", source.Slowed},
		"our credential is no good":               {401, "", "", source.Rejected},
		"as the operator has said":                {403, "", `{"error":"not in your plan"}`, source.Refused},
		"403, as about one payer":                 {403, "", `{"error":"sanctioned"}`, source.Troubled},
		"trouble of its own":                      {503, "", "", source.Troubled},
		"yes":                                     {200, "", settled(nil), source.Worked},
		"a no":                                    {200, "", no("insufficient_funds"), source.Worked},
		"a no with 402":                           {402, "", no("insufficient_funds"), source.Worked},
		"a no with 402 and a code of its own":     {402, "", no("payer_on_a_list"), source.Worked},
		"a no with 403 that speaks of the plan":   {403, "", no("payment_plan_missing"), source.Refused},
		"a no that is the name of a limit":        {200, "", no("quota_exceeded"), source.Refused},
		"a no of x402's that an operator matched": {403, "", `{"success":false,"errorReason":"insufficient_funds","note":"plan"}`, source.Worked},
	} {
		got := reply{status: tt.status, body: []byte(tt.body)}
		if tt.header != "" {
			got.retryAfter = retryAfter(tt.header)
		}
		_, fault := settleAnswer(tt.status, got.body, expected{networks: []string{network.ID}, payer: signed.From})
		if v := c.verdict(got, fault == 0); v.Kind != tt.want {
			t.Errorf("%s: %s, want %s", name, v.Kind, tt.want)
		}
	}
}

// B71, #1692. Once it has refused it is asked nothing, by nobody, until its window ends; then one request tests it.
func TestClient_Settle_WhoRefusesIsAskedOnceAWindow(t *testing.T) {
	t.Parallel()
	g := guard(t, source.Prepaid)
	if err := g.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.answers(turnsAway(402, "", `{"error":"out of credit"}`))
	for window := range int32(3) {
		if err := g.Ready(network); err != nil {
			t.Fatalf("window %d: %v", window, err)
		}
		if got := settle(t.Context(), g.Client); got.Kind != Refused || faultIn(got.Err) != Unpaid {
			t.Fatalf("window %d: %+v, want it refused", window, got)
		}
		for range 3 {
			got := settle(t.Context(), g.Client)
			limit, out := errors.AsType[*source.LimitError](got.Err)
			if !out || limit.Why != source.Exhausted || got.Kind != Unsent {
				t.Fatalf("window %d, out: %+v, want its limit", window, got)
			}
			if err := g.Ask(t.Context()); !errors.As(err, &limit) {
				t.Errorf("window %d, out: asked what it supports: %v", window, err)
			}
		}
		if asked, said := g.asked.Load(), g.said.Load(); asked != window+1 || said != 1 {
			t.Fatalf("window %d: asked to settle %d times and what it supports %d times", window, asked, said)
		}
		g.shift(t, time.Hour)
	}
	// What it supports was said hours ago, and is no reason to ask: the test is work.
	if err := g.Ask(t.Context()); err != nil || g.said.Load() != 1 {
		t.Errorf("the window has ended: %v, asked what it supports %d times, want once", err, g.said.Load())
	}
	g.answers(says(200, settled(nil)))
	if got := settle(t.Context(), g.Client); got.Kind != Paid {
		t.Errorf("topped up: %+v", got)
	}
	if err := g.Ready(network); err != nil || g.Ask(t.Context()) != nil || g.said.Load() != 2 {
		t.Errorf("it works again: %v, asked what it supports %d times, want twice", err, g.said.Load())
	}
}

// A turn in which nothing left us leaves the test of the window to the next one.
func TestTurn_End_WhoAskedNothingHasNotTested(t *testing.T) {
	t.Parallel()
	g := guard(t, source.Prepaid)
	if err := g.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.answers(turnsAway(402, "", ""))
	settle(t.Context(), g.Client)
	g.shift(t, time.Hour)
	turn, err := g.Reserve(t.Context(), source.Settlement, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Reserve(t.Context(), source.Refund, 1); err == nil {
		t.Fatal("a second one tests too")
	}
	turn.End(0)
	turn, err = g.Reserve(t.Context(), source.Refund, 1)
	if err != nil {
		t.Fatalf("after a turn in which nothing was asked: %v", err)
	}
	if got := g.Settle(t.Context(), turn, network, signed); got.Kind != Refused {
		t.Errorf("%+v", got)
	}
	turn.End(0)
	if _, err := g.Reserve(t.Context(), source.Refund, 1); err == nil {
		t.Error("after one in which it was asked it is tested again")
	}
}

// A question is a request too: its refusal is an outage, and its good answer costs nothing and ends none.
func TestClient_Ask_ARefusalCountsAndAGoodAnswerDoesNot(t *testing.T) {
	t.Parallel()
	g := guard(t, source.Prepaid)
	for status, why := range map[int]source.Why{402: source.Exhausted, 401: source.Denied} {
		g.shift(t, 48*time.Hour)
		g.supports(turnsAway(status, "", ""))
		if err := g.Ask(t.Context()); faultIn(err) == 0 || g.out() != why {
			t.Errorf("%d: %v, out: %s, want %s", status, err, g.out(), why)
		}
		g.shift(t, time.Hour)
	}
	// Its kinds are not known, so the first process that may ask asks for them.
	g.supports(says(200, supportsBoth))
	before := g.said.Load()
	if err := g.Ask(t.Context()); err != nil || g.said.Load() != before+1 || g.Settles(network) != nil {
		t.Errorf("the window has ended: %v, asked %d times, %v", err, g.said.Load()-before, g.Settles(network))
	}
	g.answers(turnsAway(402, "", ""))
	if got := settle(t.Context(), g.Client); got.Kind != Refused {
		t.Errorf("the test is left for work: %+v", got)
	}
	if g.out() != source.Exhausted || !strings.Contains(g.Says(), "no credit") {
		t.Errorf("out: %s; it says %q", g.out(), g.Says())
	}
}

func TestClient_Verify_IsCountedAsWork(t *testing.T) {
	t.Parallel()
	g := guard(t, source.Daily)
	if err := g.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	refuse := turnsAway(402, "", "")
	g.verify.Store(&refuse)
	if _, err := g.Verify(t.Context(), network, signed); faultIn(err) != Unpaid {
		t.Errorf("%v, want that it wants to be paid", err)
	}
	var limit *source.LimitError
	if _, err := g.Verify(t.Context(), network, signed); !errors.As(err, &limit) || limit.Until.UTC().Hour() != 0 {
		t.Errorf("%v, want its limit until midnight", err)
	}
}
