package delivery

import (
	"context"
	"errors"
	"time"

	"market/internal/call"
	"market/internal/payment"
	"market/internal/refusal"
)

// refuse answers a request that is turned down before its payment was claimed. A payment that is known already is looked up first: a
// gate, a delisting or an expiry never hides a known call. paid is nil where no payment was shown or its signature does not hold.
func (p *Path) refuse(ctx context.Context, id call.ID, r Request, paid *admitted, no *refusal.Error) Answer {
	if paid != nil {
		return p.known(ctx, r, paid, &unclaimed{id: id, no: no})
	}
	return p.turnDown(ctx, id, r, nil, no)
}

// unclaimed is what to answer where a payment turns out not to be known.
type unclaimed struct {
	id call.ID
	no *refusal.Error
}

// turnDown measures a refusal and answers it.
func (p *Path) turnDown(ctx context.Context, id call.ID, r Request, paid *admitted, no *refusal.Error) Answer {
	a := p.challenged(ctx, r, no, refused(no, p.Now()))
	if _, ends := call.RowOf(no.Reason); !ends {
		return a
	}
	d := newDelivery(id, r).end(no.Reason, no.Detail)
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
	return a
}

// challenged adds our terms to an answer that invites another payment.
func (p *Path) challenged(ctx context.Context, r Request, no *refusal.Error, a Answer) Answer {
	switch no.Reason {
	case call.PaymentMalformed, call.PaymentMismatch, call.PaymentInvalid, call.PayerUnfunded, call.SettleRejected:
	default:
		return a
	}
	offers, closed := p.offers(ctx, r.Target)
	if closed != nil {
		return a
	}
	challenge, err := payment.NewChallenge(p.resource(r.Target), offers)
	if err != nil {
		p.OnError(err)
		return a
	}
	a.Challenge, a.Code = &challenge, payment.CodeOfError(no)
	return a
}

// known answers a payment by what became of its call. Without a call, or where the call is provably unused, otherwise stands.
func (p *Path) known(ctx context.Context, r Request, paid *admitted, otherwise *unclaimed) Answer {
	c, err := p.payments.Find(ctx, p.DB, paid.identity())
	if err != nil && !errors.Is(err, payment.ErrUnclaimed) {
		return refused(refusal.New(call.Internal, "").WithCause(err), p.Now())
	}
	if otherwise != nil && (err != nil || c.State == call.StateReleased) {
		return p.turnDown(ctx, otherwise.id, r, paid, otherwise.no)
	}
	if err != nil {
		// The claim met a row that is gone; only a lapsed claim is ever deleted.
		return refused(refusal.New(call.InProgress, "the call moved meanwhile; send the same payment again").WithUntil(p.Now().Add(time.Second)), p.Now())
	}
	print, ok := fingerprint(r)
	if !ok || print != c.Fingerprint {
		a := refused(refusal.New(call.PaymentReused, "this payment belongs to another request"), p.Now())
		a.Call = c.ID
		return a
	}
	return p.standingOf(ctx, c)
}

// standingOf answers the same request with the same payment.
func (p *Path) standingOf(ctx context.Context, c payment.Call) Answer {
	record, err := Lookup(ctx, p.DB, c.ID)
	if err != nil {
		return refused(refusal.New(call.Internal, "").WithCause(err), p.Now())
	}
	a := Answer{Call: c.ID, Outcome: record.Outcome, Reason: record.Reason, Detail: record.Detail,
		Charged: record.Charged(), Payment: record.Paid(), Refund: record.Returning()}
	open := func(reason call.Reason, wait time.Duration, detail string) Answer {
		a.Reason, a.RetryAfter, a.Detail = reason, max(time.Second, wait), detail
		return a
	}
	switch c.State {
	case call.Settling, call.Settled, call.Asked:
		if c.LeaseLeft > 0 {
			return open(call.InProgress, min(c.LeaseLeft, pendingRetry), "the call is under way")
		}
		return open(call.SettlementPending, pendingRetry, "what became of the call is not known yet")
	case call.StateReleased:
		return open(call.InProgress, time.Second, "the payment was not used; send the same one again")
	case call.Unknown:
		return open(call.SettlementPending, pendingRetry, "the payment was sent and is not proved yet")
	case call.Rejected:
		a.Outcome, a.Reason, a.Charged, a.Detail = call.Refused, call.SettleRejected, ChargedNo,
			"the token refused this payment"
		return a
	case call.StateServed:
		a.Reason, a.Detail = call.AnswerExpired, "the call was served; its answer went out once and is not kept"
		return a
	case call.StateRefused, call.StateFailed, call.StateCooldownRefused:
		return a
	}
	return a
}
