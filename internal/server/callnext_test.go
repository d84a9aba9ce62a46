package server

import (
	"strings"
	"testing"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/refund"
)

// What a caller is told to do fits its call: no payment where there was none, no new one where the old one is still good, no refund where none is owed.
func TestNextOf_FitsEveryEndOfACall(t *testing.T) {
	t.Parallel()
	claimed := map[call.Reason]bool{call.SettleRejected: true, call.SettleFailed: true, call.RejectedByService: true}
	for _, row := range call.Rows() {
		for _, trial := range []bool{false, true} {
			r := delivery.Record{Outcome: row.Outcome, Reason: row.Reason, Party: row.Party, Trial: trial}
			taken := !trial && (row.Outcome != call.Refused || claimed[row.Reason])
			owed := taken && row.Outcome != call.Served && row.Reason != call.SettlementLost && row.Reason != call.SettleRejected && row.Reason != call.SettleFailed
			if taken {
				r.Network, r.State = testNetwork.ID, call.FinalState(row.Outcome)
			}
			if owed {
				r.Refund = &refund.Refund{State: refund.StateOwed}
			}
			got := nextOf(r)
			has := func(text string) bool { return strings.Contains(got, text) }
			what := string(row.Outcome) + " " + string(row.Reason)
			if trial {
				what = "trial, " + what
			}
			switch {
			case (got == "") != (row.Outcome == call.Served):
				t.Errorf("%s: %q", what, got)
			case trial && (has("payment") || has("refund")):
				t.Errorf("%s cost nothing, and its caller is told %q", what, got)
			case has("refund") && !owed:
				t.Errorf("%s owes no refund, and its caller is told %q", what, got)
			case has("new payment") && !taken:
				t.Errorf("%s used no payment, and its caller is told %q", what, got)
			case has("same payment") && taken:
				t.Errorf("%s used its payment, and its caller is told %q", what, got)
			case strings.HasPrefix(string(row.Reason), "input_") && !has("correct the request"),
				row.Reason == call.SettleRejected && !trial && (has("correct the request") || !has("wallet")),
				row.Reason == call.RejectedByService && !has("correct the request"):
				t.Errorf("%s: %q", what, got)
			}
		}
	}
}

func TestNextOf_WhatIsOpenHasToBeWaitedFor(t *testing.T) {
	t.Parallel()
	for state, want := range map[call.State]string{call.Settling: "", call.Unknown: "", call.Settled: "", call.Asked: "",
		call.StateReleased: "send the same payment again.", call.Expired: "call again with a new payment.",
		call.Rejected: "look at the wallet: its funds, and whether it may pay. Then call again with a new payment."} {
		if got := nextOf(delivery.Record{State: state, Network: testNetwork.ID}); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
