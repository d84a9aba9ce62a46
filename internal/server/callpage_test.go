package server

import (
	"bytes"
	"testing"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/refund"
)

func TestTellingOf_EveryStateSaysWhereTheMoneyIs(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	for _, state := range call.States() {
		r := delivery.Record{State: state}
		if state.Final() {
			r.Outcome = call.Outcome(state)
		}
		got := s.tellingOf(r)
		if got.Headline == "" || got.Explanation == "" || (got.Tone != "good" && got.Tone != "wait" && got.Tone != "bad") {
			t.Errorf("%s: %+v", state, got)
		}
		if moves := !state.Final() && state != call.StateReleased; moves != got.Moves {
			t.Errorf("%s: moving %v, want %v", state, got.Moves, moves)
		}
	}
	headlines := map[string]bool{}
	for _, state := range []refund.State{refund.StateOwed, refund.StateConfirmed, refund.StateParked, refund.StateVoid} {
		got := s.tellingOf(delivery.Record{State: call.StateFailed, Outcome: call.Failed, Refund: &refund.Refund{State: state}})
		if headlines[got.Headline] {
			t.Errorf("two states of a refund read %q", got.Headline)
		}
		headlines[got.Headline] = true
	}
}

// B145: what a caller or a provider wrote is shown, and does nothing.
func TestCallPage_ShowsTextAndRunsNothing(t *testing.T) {
	t.Parallel()
	page := callPage{telling: telling{Tone: `good" onload="x`, Headline: `<script>alert(1)</script>`, Explanation: "&"},
		URL: "javascript:alert(1)", Facts: []fact{{Name: "Request", Value: `GET /<img src=x onerror=alert(1)>`, Code: true}, {Name: "Link", Value: "x", Link: "javascript:alert(1)"}}}
	var out bytes.Buffer
	if err := callTemplate.Execute(&out, page); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>", "<img", `onload="x`} {
		if bytes.Contains(out.Bytes(), []byte(bad)) {
			t.Errorf("the page holds %s", bad)
		}
	}
}
