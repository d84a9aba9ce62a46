package server

import (
	"market/internal/call"
	"market/internal/delivery"
)

// nextOf says what the caller can do; empty where there is nothing to do.
func nextOf(r delivery.Record) string {
	switch {
	case r.Outcome == call.Served:
		return ""
	case r.Trial:
		return trialNext(r)
	case r.State == call.StateReleased:
		return "send the same payment again."
	case r.State == call.Rejected, r.Reason == call.SettleRejected:
		return "look at the wallet: its funds, and whether it may pay. Then call again with a new payment."
	case r.Outcome == "" && r.State != call.Expired:
		return ""
	case r.Network == "":
		return untakenNext(r)
	case r.Reason == call.RejectedByService:
		return "correct the request, and call again with a new payment." + aboutRefund(r)
	case r.Reason == call.InCooldown, r.Party == call.Service:
		return "call again later, or another service, with a new payment." + aboutRefund(r)
	case r.Reason == call.Withdrawn:
		return "call another service, with a new payment." + aboutRefund(r)
	}
	return "call again with a new payment." + aboutRefund(r)
}

func aboutRefund(r delivery.Record) string {
	if r.Refund == nil {
		return ""
	}
	return " Nothing has to be done for the refund."
}

// trialNext is of a call that cost nothing.
func trialNext(r delivery.Record) string {
	switch r.Reason {
	case call.InputEmpty, call.InputInvalid, call.InputTooLarge, call.RejectedByService:
		return "correct the request, and try again."
	case call.NotListed, call.Withdrawn:
		return "try another service."
	}
	return "try again later, or another service."
}

// untakenNext is of a call that was turned down before its payment was taken: that one is as good as it was.
func untakenNext(r delivery.Record) string {
	switch r.Reason {
	case call.InputEmpty, call.InputInvalid, call.InputTooLarge:
		return "correct the request, and send it with the same payment, which was not used."
	case call.PaymentMalformed, call.PaymentMismatch, call.PaymentInvalid:
		return "make a payment as the terms of the 402 say, and send the request again with it."
	case call.PayerUnfunded:
		return "put what is missing into the wallet, and send the same payment again, which was not used."
	case call.NotListed:
		return "call another service. The payment was not used."
	}
	return "send the same payment again later, which was not used."
}
