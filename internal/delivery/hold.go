package delivery

import (
	"context"
	"errors"
	"time"

	"market/internal/answer"
	"market/internal/call"
	"market/internal/capacity"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/crash"
	"market/internal/facilitator"
	"market/internal/payment"
	"market/internal/refusal"
)

// A held call is one whose payment this process has: it claimed it, or took the call over after its lease had run out.
type held struct {
	id    call.ID
	state call.State // where it stood when we got it
	rail  Rail
	// version is that of the request which walks the call now.
	version payment.Version
	signed  chain.Signed // the authorization that was claimed
	proof   *chain.Proof // the payment is proved already; nil: it has to be settled
	// shown says that another process may have shown the authorization before.
	shown bool
	block uint64 // the head when the payment was claimed
	// units are set aside for its settlement and its refund; nil where none are, as of a call that was taken over.
	units *facilitator.Reservation
}

// hold takes the payment for this request: by a claim, the first commit, or by taking over the call that it belongs to. no is what speaks
// against the request; a payment that is known already is looked up first all the same, because a gate, a delisting or an expiry never hides a
// known call. An answer means that the request ends here.
func (p *Path) hold(ctx context.Context, id call.ID, r Request, paid *admitted, place *place, no *refusal.Error) (held, *Answer) {
	if paid == nil {
		return held{}, p.turnDown(ctx, id, r, nil, no)
	}
	if paid.doubt != nil {
		// A refusal leaves the doubt, unless these very bytes were believed before.
		switch _, err := p.recognise(ctx, paid); {
		case err != nil:
			return held{}, p.unsure(err)
		case paid.doubt != nil:
			return held{}, p.turnDown(ctx, id, r, nil, no) // the payer is not named: it may know nothing of this
		}
	}
	if no != nil {
		return p.known(ctx, id, r, paid, place, no)
	}
	return p.claim(ctx, id, r, paid, place)
}

// claim takes the payment before its authorization is shown to anybody.
func (p *Path) claim(ctx context.Context, id call.ID, r Request, paid *admitted, place *place) (held, *Answer) {
	print, ok := fingerprint(r)
	if !ok {
		return p.known(ctx, id, r, paid, place, refusal.New(call.InputInvalid, "the body did not arrive whole"))
	}
	before, end := p.claiming.begin(paid.identity(), payment.Open{Nonce: paid.signed.Nonce, Amount: paid.signed.Value})
	defer end()
	if no := p.means(ctx, r, paid, before); no != nil {
		return p.known(ctx, id, r, paid, place, no)
	}
	// One that is known takes no place, and nothing of a rate: who sends it again and again would keep everybody else out.
	// Nor may it use up the one request that tests a facilitator which is out.
	if r.Target.Service.Capacity != (capacity.Limit{}) || paid.rail.Units != nil && paid.rail.Units.Counts() {
		if c, err := p.payments.Find(ctx, p.DB, paid.identity()); err == nil && c.State != call.StateReleased {
			return p.goOn(ctx, r, paid, place, c, nil)
		}
	}
	// Not before its payer is known to have the money: empty wallets would keep everybody else out.
	if no := p.enter(place); no != nil {
		return p.known(ctx, id, r, paid, place, no)
	}
	// Last of all, so that the common refusals of a facilitator claim nothing, and what is refused for another reason costs no unit.
	units, no := p.reserve(ctx, paid.rail, r.Target.Service)
	if no != nil {
		return p.known(ctx, id, r, paid, place, no)
	}
	claimed := false
	defer func() {
		if !claimed {
			units.End()
		}
	}()
	// Whether a claim stands must be known, so the caller's leaving may not cut it short.
	own, cancel := detached(ctx, writeTime)
	defer cancel()
	crash.Before(crash.Claim)
	crash.BeforeMove(call.StateReleased, call.Settling)
	of, ours, err := p.payments.Claim(own, p.DB, payment.Claim{
		ID: id, Network: paid.rail.Network.ID, Signed: paid.signed, Service: r.Target.Service.ID, Endpoint: r.Target.Endpoint.ID,
		PriceRevision: paid.offer.PriceRevision, FeeBPS: p.limitsOf(r.Target.Service).FeeBPS, Fingerprint: print, Method: r.Method, Path: r.Target.UpstreamPath,
		Source: r.Source, Origin: p.originOf(r), Identifier: paid.identifier, Owner: p.owner, Lease: settleLease, Block: paid.block,
	})
	if errors.Is(err, payment.ErrIdentifierTaken) {
		place.leave()
		return p.identified(ctx, id, r, paid, place)
	}
	if err != nil {
		return held{}, p.unsure(err)
	}
	if !ours {
		place.leave()
		return p.known(ctx, id, r, paid, place, nil)
	}
	claimed = true
	if of == id {
		crash.After(crash.Claim)
	} else {
		crash.AfterMove(call.StateReleased, call.Settling)
	}
	return held{id: of, state: call.Settling, rail: paid.rail, version: paid.version, signed: paid.signed, block: paid.block, units: units}, nil
}

// known answers a payment by what became of its call, or takes the call over where nobody walks it any more. no stands where the payment is
// not known, or provably unused; it is nil where a claim found the payment taken.
func (p *Path) known(ctx context.Context, id call.ID, r Request, paid *admitted, place *place, no *refusal.Error) (held, *Answer) {
	c, err := p.payments.Find(ctx, p.DB, paid.identity())
	switch {
	case errors.Is(err, payment.ErrUnclaimed) && no == nil:
		// Between the claim and this look the row went; only a lapsed claim is ever deleted.
		return held{}, p.told(refusal.New(call.InProgress, "the call moved meanwhile; send the same payment again").WithUntil(p.Now().Add(time.Second)))
	case errors.Is(err, payment.ErrUnclaimed), err == nil && c.State == call.StateReleased && no != nil:
		return held{}, p.turnDown(ctx, id, r, paid, no)
	case err != nil:
		return held{}, p.unsure(err)
	}
	return p.goOn(ctx, r, paid, place, c, no)
}

// goOn answers a payment by the call that it belongs to, or takes that call over.
func (p *Path) goOn(ctx context.Context, r Request, paid *admitted, place *place, c payment.Call, no *refusal.Error) (held, *Answer) {
	print, ok := fingerprint(r)
	if !ok || print != c.Fingerprint || !c.Same(paid.signed) {
		a := p.told(refusal.New(call.PaymentReused, "this payment belongs to another request"))
		a.Call = c.ID
		return held{}, a
	}
	if c.LeaseLeft <= 0 && !c.Late && mayGoOn(c.State, r.Target, no) && carried(r) == nil {
		// Whoever goes on with the call gets its answer.
		if no := p.prove(ctx, r, paid, answer.Facts{Payer: paid.signed.From, Identifier: c.Identifier, Source: c.Source, Age: c.Age}); no != nil {
			a := p.standingOf(ctx, r, paid, c)
			a.Reason, a.Detail, a.Err = no.Reason, no.Detail, no.Cause
			return held{}, &a
		}
		// A call whose service has left the shelf is not asked, and needs none.
		if gone := no != nil && no.Reason == call.NotListed; !gone && !place.await(ctx) {
			a := p.standingOf(ctx, r, paid, c)
			return held{}, &a
		}
		h, ours, err := p.takeOver(ctx, paid, c)
		if err != nil {
			return held{}, p.unsure(err)
		}
		if ours {
			return h, nil
		}
		// Somebody else was first; the answer is what the call looks like now.
		if c, err = p.payments.Find(ctx, p.DB, paid.identity()); err != nil {
			return held{}, p.unsure(err)
		}
	}
	a := p.standingOf(ctx, r, paid, c)
	return held{}, &a
}

// mayGoOn says whether a call that nobody walks is gone on with, in spite of what speaks against the request. While its settlement is
// unclear the request has to be good, because its authorization is shown again. Once its money is here, what matters is whether the
// service can be asked: its payer has a claim on an answer, and one that finds the service full waits for a place. A listing that can't be used may
// be used again before the grace is over.
func mayGoOn(s call.State, t catalog.Target, no *refusal.Error) bool {
	switch s {
	case call.Settling, call.Unknown:
		return no == nil
	case call.Settled:
		return no == nil || t.Broken() == "" && no.Reason != call.NotLive && no.Reason != call.NotReady
	case call.StateReleased, call.Rejected, call.Expired, call.Asked,
		call.StateServed, call.StateRefused, call.StateFailed, call.StateCooldownRefused:
		return false
	}
	return false
}

func (p *Path) takeOver(ctx context.Context, paid *admitted, c payment.Call) (held, bool, error) {
	own, cancel := detached(ctx, writeTime)
	defer cancel()
	o, ours, err := takeOver(own, p.DB, c.ID, p.owner, settleLease)
	if err != nil || !ours {
		return held{}, false, err
	}
	h := held{id: o.ID, state: o.State, rail: paid.rail, version: paid.version, signed: o.Signed, shown: true, block: o.ClaimedBlock}
	if o.State == call.Settled {
		h.proof = &o.Proof
	}
	return h, true, nil
}

// identified answers a payment whose identifier names another call of its payer: the second of two authorizations for one request is not
// claimed, and so not charged.
func (p *Path) identified(ctx context.Context, id call.ID, r Request, paid *admitted, place *place) (held, *Answer) {
	// Of one payment that is sent twice at once the second can meet the name before it meets the payment.
	if _, err := p.payments.Find(ctx, p.DB, paid.identity()); err == nil {
		return p.known(ctx, id, r, paid, place, nil)
	}
	first, err := p.payments.FindIdentified(ctx, p.DB, paid.signed.From, paid.identifier)
	if err != nil {
		return held{}, p.unsure(err)
	}
	record, err := Lookup(ctx, p.DB, first)
	if err != nil {
		return held{}, p.unsure(err)
	}
	a := p.told(refusal.New(call.PaymentReused, "this payment-identifier names a call that is %s already; this payment was not used", record.State))
	a.Call = first
	return held{}, a
}

// told is the answer to a refusal that ends no call.
func (p *Path) told(no *refusal.Error) *Answer {
	a := refused(no, p.Now())
	return &a
}

// unsure is the answer where we cannot tell what became of a payment that may be known here: its money may have moved.
func (p *Path) unsure(err error) *Answer {
	a := p.told(refusal.New(call.Internal, "something went wrong on our side; send the same payment again, and sign no other").WithCause(err).
		WithUntil(p.Now().Add(pendingRetry)))
	a.Charged = ChargedPending
	return a
}
