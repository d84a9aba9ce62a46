package delivery

import (
	"context"
	"fmt"
	"time"

	"market/internal/call"
	"market/internal/payment"
	"market/internal/refusal"
)

// turnDown measures a refusal and answers it.
func (p *Path) turnDown(ctx context.Context, id call.ID, r Request, paid *admitted, no *refusal.Error) *Answer {
	a := p.challenged(ctx, r, no, refused(no, p.Now()))
	if _, ends := call.RowOf(no.Reason); !ends {
		return &a
	}
	d := p.newDelivery(id, r).end(no.Reason, no.Detail)
	if paid != nil {
		d.Payer = paid.signed.From
	}
	kept, err := p.Recorder.Refuse(ctx, d)
	if err != nil {
		p.OnError(err)
	}
	if kept {
		a.Call = id
	}
	return &a
}

// challenged adds our terms to an answer that invites another payment.
func (p *Path) challenged(ctx context.Context, r Request, no *refusal.Error, a Answer) Answer {
	switch no.Reason {
	case call.PaymentMalformed, call.PaymentMismatch, call.PaymentInvalid, call.PayerUnfunded, call.SettleRejected:
	default:
		return a
	}
	challenge, closed := p.Quote(ctx, r)
	switch no.Reason {
	case call.PaymentMismatch, call.PaymentInvalid:
		// These invite a payment that we know we would refuse.
		if closed != nil {
			return refused(closed, p.Now())
		}
	}
	if closed == nil {
		a.Challenge, a.Code = &challenge, payment.CodeOfError(no)
	}
	return a
}

// standingOf answers the same request with the same payment.
func (p *Path) standingOf(ctx context.Context, r Request, paid *admitted, c payment.Call) Answer {
	record, err := Lookup(ctx, p.DB, c.ID)
	if err != nil {
		return *p.unsure(err)
	}
	a := Answer{Call: c.ID, Outcome: record.Outcome, Reason: record.Reason, Detail: record.Detail, Status: record.Status,
		Charged: record.Charged(), Payment: record.Paid(), Refund: record.Returning()}
	if p := a.Payment; p != nil && (p.Proved && !p.TakenBack || p.Word != "") {
		a.Receipt = receiptOf(paid.version, paid.rail.Network, a.Payment.Payer)
		a.Receipt.Success, a.Receipt.Transaction = true, a.Payment.Transaction.Hex()
	}
	open := func(reason call.Reason, wait time.Duration, detail string) Answer {
		a.Reason, a.RetryAfter, a.Detail = reason, max(time.Second, wait), detail
		return a
	}
	switch c.State {
	case call.Settling, call.Settled, call.Asked:
		if c.LeaseLeft > 0 {
			return open(call.InProgress, min(c.LeaseLeft, pendingRetry), "the call is under way")
		}
		if record.Review {
			a.Reason, a.Detail = call.NeedsReview, whyReview
			return a
		}
		if c.State == call.Settled && record.Proved {
			return open(call.SettlementPending, pendingRetry,
				fmt.Sprintf("the payment is proved and the service was not asked yet; the call can still be served for %s, then it is refunded",
					max(0, p.Grace+c.LeaseLeft).Truncate(time.Second)))
		}
		return open(call.SettlementPending, pendingRetry, "what became of the call is not known yet; ask for it, or send the same payment again")
	case call.StateReleased:
		return open(call.InProgress, time.Second, "the payment was not used; send the same one again")
	case call.Expired:
		return open(call.SettlementPending, time.Second, "the payment never reached the chain, and its time is over")
	case call.Unknown:
		return open(call.SettlementPending, pendingRetry, "the payment was sent and is not proved yet")
	case call.Rejected:
		a.Outcome, a.Reason, a.Charged, a.Detail = call.Refused, call.SettleRejected, ChargedNo,
			"the token refused this payment"
		return a
	case call.StateServed:
		return p.withReceipt(p.redeem(ctx, r, paid, a), record)
	case call.StateRefused, call.StateFailed, call.StateCooldownRefused:
		a.Party, a.Signed = record.Party, p.Receipt(record)
		return a
	}
	return a
}
