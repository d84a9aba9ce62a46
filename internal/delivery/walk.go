package delivery

import (
	"context"

	"market/internal/call"
	"market/internal/refund"
)

// Call walks one paid call from its payment header to its answer. The order of the steps is the product: nothing is charged before the
// input is known to be good and the service to be alive, and a settled payment ends served or refunded.
func (p *Path) Call(ctx context.Context, r Request) Answer {
	p.walking.Add(1)
	defer p.walking.Done()

	id := call.NewID()

	// admit: is it a payment, of ours, signed by its payer, in time? From here on a payment that is known already is answered as such.
	paid, no := p.admit(ctx, r)
	if no != nil {
		return p.refuse(ctx, id, r, paid, no)
	}

	// classify: is the caller's input acceptable?
	input, no := classify(r)
	if no != nil {
		return p.refuse(ctx, id, r, paid, no)
	}

	// probe: does the service answer its liveness probe?
	if no := p.probe(ctx, r); no != nil {
		return p.refuse(ctx, id, r, paid, no)
	}

	// settle: claim the payment, then move the money. Two commits; between them the authorization is shown to the chain.
	claim, answer := p.claim(ctx, id, r, paid)
	if answer != nil {
		return *answer
	}
	settlement, answer := p.settle(ctx, r, paid, claim)
	if answer != nil {
		return *answer
	}

	// derive: what a refund of this payment is, from the payment alone.
	back := refund.Derive(refund.Payment{
		Call: claim.ID, Network: paid.rail.Network.ID, ChainID: paid.rail.Network.ChainID, Asset: paid.signed.Asset, Payer: paid.signed.From,
		Nonce: paid.signed.Nonce, Amount: paid.signed.Value, Treasury: paid.signed.To, Transaction: settlement.proof.Transaction,
	})
	d := newDelivery(claim.ID, r)
	d.Payer = paid.signed.From

	// cooldown: is the service cooling down, or gone? The commit of the settlement has decided it.
	if no := resting(settlement.standing); no != nil {
		d = d.end(no.Reason, no.Detail)
		d.Refund = &back
		return p.record(ctx, r, paid, d, settlement, nil)
	}

	// ask: call the upstream.
	d.AskedAt = settlement.askedAt
	result := p.ask(ctx, claim.ID, r)
	d = d.answered(result, r, input)
	if d.Outcome != call.Served {
		d.Refund = &back
	}

	// record, and answer.
	return p.record(ctx, r, paid, d, settlement, &result)
}

// Trial walks one unpaid trial call: the same steps without admit, settle and derive.
func (p *Path) Trial(ctx context.Context, r Request) Answer {
	p.walking.Add(1)
	defer p.walking.Done()

	id := call.NewID()
	r.trial = true
	if no := trialOffered(r); no != nil {
		return refused(no, p.Now())
	}
	input, no := classify(r)
	if no != nil {
		return p.refuse(ctx, id, r, nil, no)
	}
	if no := p.probe(ctx, r); no != nil {
		return p.refuse(ctx, id, r, nil, no)
	}

	standing, no := p.takeTrial(ctx, r)
	if no != nil {
		return refused(no, p.Now())
	}
	d := newDelivery(id, r)
	if no := resting(standing); no != nil {
		return p.recordTrial(ctx, d.end(no.Reason, no.Detail), standing, nil)
	}

	d.AskedAt = standing.askedAt
	result := p.ask(ctx, id, r)
	return p.recordTrial(ctx, d.answered(result, r, input), standing, &result)
}
