package delivery

import (
	"context"
	"sync"

	"market/internal/call"
	"market/internal/refund"
)

// Call walks one paid call from its payment header to its answer. The order of the steps is the product: nothing is charged before the
// input is known to be good and the service to be alive, and a settled payment ends served or refunded.
func (p *Path) Call(ctx context.Context, r Request) Answer {
	p.walking.Add(1)
	defer p.walking.Done()
	p.unshown.Add(1)
	shown := sync.OnceFunc(func() { p.unshown.Add(-1) })
	defer shown()

	id := call.NewID()

	// admit: is it a payment, of ours, signed by its payer, in time?
	paid, no := p.admit(ctx, r)
	r.wallet = paid.payer()

	// classify: is the caller's input acceptable?
	if no == nil {
		no = classify(r)
	}

	// probe: does the service answer its liveness probe?
	if no == nil {
		no = p.probe(ctx, r)
	}

	// capacity: has the service room for one more call? The place is taken right before the claim, and held until the walk ends.
	place := p.place(r)
	defer place.leave()
	if no == nil {
		no = p.full(r)
	}

	// Whatever speaks against the request, a payment that is known already is answered as such, or its call is gone on with.
	held, answer := p.hold(ctx, id, r, paid, place, no)
	if answer != nil {
		return *answer
	}

	// settle: the payment is claimed, the first commit; now move the money, the second. Between them the authorization is shown to the chain.
	// What its units are not needed for is given back in the end.
	defer held.units.End()
	settlement, answer := p.settle(ctx, r, held)
	shown()
	if answer != nil {
		return *answer
	}

	// derive: what a refund of this payment is, from the payment alone.
	back := refund.Derive(refund.Payment{
		Call: held.id, Network: held.rail.Network.ID, ChainID: held.rail.Network.ChainID, Asset: held.signed.Asset, Payer: held.signed.From,
		Nonce: held.signed.Nonce, Amount: held.signed.Value, Treasury: held.signed.To, Transaction: settlement.proof.Transaction,
	})
	d := p.newDelivery(held.id, r)
	d.Payer, d.owner = held.signed.From, p.owner

	// cooldown: is the service cooling down, or gone? The commit of the settlement has decided it.
	if no := resting(settlement.standing); no != nil {
		d = d.end(no.Reason, no.Detail)
		d.Refund = held.owed(back)
		return p.record(ctx, r, held, d, settlement, nil)
	}

	// ask: call the upstream, when it is this call's turn. A stream goes to the caller while it comes, and is not over before it is recorded.
	d.AskedAt = settlement.askedAt
	place.at.Turn()
	r.Target = p.asOfNow(r.Target)
	result := p.ask(ctx, held.id, r, paidHead(held, settlement))
	d = d.answered(result, r)
	if d.Outcome != call.Served {
		d.Refund = held.owed(back)
	}

	// record, and answer.
	return p.record(ctx, r, held, d, settlement, &result)
}

// Trial walks one unpaid trial call: the same steps without admit, settle and derive.
func (p *Path) Trial(ctx context.Context, r Request) Answer {
	p.walking.Add(1)
	defer p.walking.Done()

	id := call.NewID()
	r.trial = true
	limits, no := p.trialOffered(r)
	if no != nil {
		return *p.turnDown(ctx, id, r, nil, no)
	}
	signIn, no := p.trialSignIn(r)
	if no != nil {
		return *p.turnDown(ctx, id, r, nil, no)
	}
	r.wallet = signIn.Address
	if no := classify(r); no != nil {
		return *p.turnDown(ctx, id, r, nil, no)
	}
	if no := p.probe(ctx, r); no != nil {
		return *p.turnDown(ctx, id, r, nil, no)
	}

	if no := p.full(r); no != nil {
		return *p.turnDown(ctx, id, r, nil, no)
	}

	if no := p.provoked(ctx, r); no != nil {
		return *p.turnDown(ctx, id, r, nil, no)
	}
	taken, no := p.takeTrial(ctx, r, limits)
	if no != nil {
		return refused(no, p.Now()).tried(taken)
	}
	if no := resting(taken.standing); no != nil {
		if taken.cooling {
			no = no.WithUntil(p.Now().Add(taken.rest))
		}
		return p.turnDown(ctx, id, r, nil, no).tried(taken)
	}

	// Not before there is a trial left: those who come for none would keep everybody else out.
	place := p.place(r)
	defer place.leave()
	if no := p.enter(place); no != nil {
		return p.turnDown(ctx, id, r, nil, no).tried(p.giveTrialBack(ctx, r, taken))
	}
	// Last of all: it is used up by this, and keeps a row for whoever can sign, which the trial calls of the day bound.
	if no := p.useSignIn(ctx, signIn); no != nil {
		return p.turnDown(ctx, id, r, nil, no).tried(p.giveTrialBack(ctx, r, taken))
	}

	d := p.newDelivery(id, r)
	d.AskedAt = taken.askedAt
	place.at.Turn()
	r.Target = p.asOfNow(r.Target)
	result := p.ask(ctx, id, r, Answer{Call: id}.tried(taken))
	return p.recordTrial(ctx, d.answered(result, r), taken.standing, &result).tried(taken)
}
