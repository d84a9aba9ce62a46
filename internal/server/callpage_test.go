package server

import (
	"bytes"
	"strings"
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

// A reorganisation after the delivery changes what was paid, and not that the call was served.
func TestTellingOf_AServedCallWhosePaymentTheChainTookBackWasNotPaidFor(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	for name, tt := range map[string]struct {
		record     delivery.Record
		want, tone string
		moves      bool
	}{
		"dropped":    {delivery.Record{Dropped: true}, "it is sent again", "wait", true},
		"taken back": {delivery.Record{TakenBack: true}, "the market carries it", "bad", false},
	} {
		r := tt.record
		r.State, r.Outcome, r.Network, r.Proved = call.StateServed, call.Served, "eip155:84532", true
		got := s.tellingOf(r)
		if got.Headline != "This call was served" || !strings.Contains(got.Explanation, tt.want) || strings.Contains(got.Explanation, "paid for it") || got.Moves != tt.moves {
			t.Errorf("%s: %+v", name, got)
		}
		if got := s.paymentStep(r); got.Tone != tt.tone {
			t.Errorf("%s: the step of its payment is %+v", name, got)
		}
		if why := s.paid(r.Paid()).Unproved; why == "" {
			t.Errorf("%s: the API takes its payment for proved", name)
		}
	}
}

// A word is not a proof, and a page does not say that it is one.
func TestTellingOf_WhatNobodyHasProvedIsSaidToBeSo(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	owed, void := &refund.Refund{State: refund.StateOwed}, &refund.Refund{State: refund.StateVoid}
	for name, tt := range map[string]struct {
		record delivery.Record
		want   string
	}{
		"settled":             {delivery.Record{State: call.Settled, Word: "hosted"}, "our own node has not seen it yet"},
		"asked":               {delivery.Record{State: call.Asked, Word: "hosted"}, "our own node has not seen it yet"},
		"served":              {delivery.Record{State: call.StateServed, Outcome: call.Served, Word: "hosted"}, "our own node has not seen it yet"},
		"failed":              {delivery.Record{State: call.StateFailed, Outcome: call.Failed, Word: "hosted", Refund: owed}, "our own node has not seen it yet"},
		"served, never came":  {delivery.Record{State: call.StateServed, Outcome: call.Served, False: true}, "the payment never came"},
		"failed, never came":  {delivery.Record{State: call.StateFailed, Outcome: call.Failed, False: true, Refund: void}, "it never was"},
		"we died, never came": {delivery.Record{State: call.StateFailed, Outcome: call.Failed, Reason: call.SettlementLost, False: true}, "it never was"},
	} {
		got := s.tellingOf(tt.record)
		if !strings.Contains(got.Explanation, tt.want) || got.Moves != (tt.record.Word != "") {
			t.Errorf("%s: %+v, want it to say that %s", name, got, tt.want)
		}
		tt.record.Network = "eip155:84532"
		if got := s.paymentStep(tt.record); (got.Tone == "wait") != (tt.record.Word != "") || (got.Tone == "bad") != tt.record.False {
			t.Errorf("%s: the step of its payment is %+v", name, got)
		}
	}
	if got, _ := s.refundStep(delivery.Record{Refund: void, False: true}); got.Text != "No money came that could go back." {
		t.Errorf("the step of a refund of what never came is %+v", got)
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
