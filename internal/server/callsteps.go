package server

import (
	"fmt"
	"strings"
	"time"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/refund"
)

// A step is one thing that happened to a call, or did not. Tone: good (done), wait, bad, or none (it did not come to it).
type step struct {
	Tone, Name, Text string
	Reason           call.Reason // leads to the rules
	At               *moment
	Hash, Link       string // of a transaction
}

// stepsOf tells a call's life in the order in which it happens.
func (s *Server) stepsOf(r delivery.Record) []step {
	steps := []step{s.paymentStep(r), askedStep(r), endStep(r)}
	if refunded, owes := s.refundStep(r); owes {
		steps = append(steps, refunded)
	}
	began := step{Tone: "good", Name: "The request came", Text: r.Method + " " + plain(r.Path) + ".", At: momentOf(first(r.Created, r.AskedAt, r.Recorded))}
	if r.Network != "" {
		began.Name = "The request came, with a payment"
	}
	return append([]step{began}, steps...)
}

func first(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

func (s *Server) paymentStep(r delivery.Record) step {
	if r.Trial {
		return step{Tone: "none", Name: "No payment", Text: "A trial call costs nothing."}
	}
	if r.Network == "" {
		return step{Tone: "none", Name: "No payment was taken", Text: "The request was turned down before that."}
	}
	st := step{Hash: hashJSON(r.Transaction)}
	st.Link = s.explorerLink(r.Network, st.Hash)
	switch {
	case r.Word != "":
		st.Tone, st.Name, st.Text = "wait", "A facilitator says that the payment is settled", "Our own node has not seen it yet."
	case r.False:
		st.Tone, st.Name, st.Text = "bad", "The payment never came", "A facilitator said that it was settled, and it never was."
	case r.Dropped:
		st.Tone, st.Name, st.Text = "wait", "The chain does not show the payment any more", "It did before, and the same payment is sent again."
	case r.TakenBack, r.Reason == call.SettlementLost:
		st.Tone, st.Name, st.Text = "bad", "The chain took the payment back", "Its transaction is not on the chain any more."
	case r.Proved:
		st.Tone, st.Name, st.Text = "good", "The payment is settled", "The chain shows its transfer."
	case r.State == call.Rejected, r.State == call.Expired, r.State == call.StateReleased, r.State.Final():
		st.Tone, st.Name, st.Text = "none", "No money moved", "The payment is not on the chain."
	default:
		st.Tone, st.Name, st.Text = "wait", "The payment is not settled yet", "It was sent, or is about to be."
	}
	return st
}

func askedStep(r delivery.Record) step {
	switch {
	case r.Asked && r.Status != 0:
		return step{Tone: "good", Name: "The service was asked", Text: fmt.Sprintf("It answered with status %d.", r.Status), At: momentOf(r.AskedAt)}
	case r.Asked && r.Outcome != "":
		return step{Tone: "good", Name: "The service was asked", Text: "No whole answer came.", At: momentOf(r.AskedAt)}
	case r.Asked:
		return step{Tone: "wait", Name: "The service was asked", Text: "Its answer has not come yet.", At: momentOf(r.AskedAt)}
	case r.Outcome == "" && !r.State.Final() && r.State != call.Rejected && r.State != call.Expired && r.State != call.StateReleased:
		return step{Tone: "wait", Name: "The service is not asked yet", Text: "It is asked when the payment is settled."}
	}
	return step{Tone: "none", Name: "The service was not asked", Text: "It did not come to that."}
}

func endStep(r delivery.Record) step {
	if r.Outcome == "" {
		return step{Tone: "wait", Name: "The call has not ended", Text: "Its state is " + strings.ReplaceAll(string(r.State), "_", " ") + "."}
	}
	st := step{Tone: "bad", Text: "Not delivered.", Reason: r.Reason, At: momentOf(r.Recorded)}
	if r.Detail != "" {
		st.Text = plain(upperFirst(r.Detail)) + "."
	}
	switch r.Outcome {
	case call.Served:
		st.Tone, st.Name = "good", "Served"
		if r.Detail == "" {
			st.Text = "The answer went to the caller."
		}
	case call.Refused:
		st.Name = "Refused"
	case call.Failed:
		st.Name = "Failed"
	case call.CooldownRefused:
		st.Name = "Refused, because the service was resting"
	}
	return st
}

func upperFirst(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// refundStep says where a refund is; false where none is owed.
func (s *Server) refundStep(r delivery.Record) (step, bool) {
	if r.Refund == nil {
		return step{}, false
	}
	st := step{Tone: "wait", Name: "The refund is on its way", Hash: hashJSON(r.Refund.Transaction), At: momentOf(r.Refund.ConfirmedAt),
		Text: "It is sent as soon as the payment is final on the chain."}
	st.Link = s.explorerLink(r.Network, st.Hash)
	switch r.Refund.State {
	case refund.StateConfirmed:
		st.Tone, st.Name, st.Text = "good", "The refund arrived", "The whole price is back in the wallet that paid."
	case refund.StateParked:
		st.Tone, st.Name, st.Text = "bad", "The refund waits for the operator", "It is owed, and could not be sent yet."
	case refund.StateVoid:
		st.Tone, st.Name, st.Text = "none", "No refund", "The chain gave the money back itself."
		if r.False {
			st.Text = "No money came that could go back."
		}
	case refund.StateSent:
		st.Text = "It was sent, and is not final on the chain yet."
	case refund.StateOwed:
	}
	return st, true
}
