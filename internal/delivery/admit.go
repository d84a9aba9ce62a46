package delivery

import (
	"context"
	"errors"
	"slices"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/refusal"
)

// An admitted payment decodes, and its payer signed it. Whether it may pay for this call is another question.
type admitted struct {
	version payment.Version // that the request speaks, and is answered in
	rail    Rail
	offer   payment.Offer // zero where it answers none of ours
	signed  chain.Signed
	block   uint64 // the head that it was checked at
	// identifier is the name that the caller gave the payment; empty for none.
	identifier string
}

func (a admitted) identity() payment.Identity {
	return payment.Identity{Network: a.rail.Network.ID, Asset: a.signed.Asset, Payer: a.signed.From, Nonce: a.signed.Nonce}
}

// admit decodes the payment header, matches it to our own terms and verifies it locally. With a refusal it returns the payment as far as
// its signature holds, so that a payment that is known already is found before it is refused.
func (p *Path) admit(ctx context.Context, r Request) (*admitted, *refusal.Error) {
	payload, err := payment.FromHeaders(r.Header)
	if err != nil {
		return nil, noPayment(r, err)
	}
	payload = payload.Normalize(p.networks()...)
	offers, no := p.acceptable(r.Target)
	if no != nil {
		return nil, no
	}
	signed, err := payment.Identify(payload, offers...)
	if err != nil {
		return nil, noPayment(r, err)
	}
	payload = payload.In(signed.Asset)
	rail, _ := p.rail(payload.Network) // Identify found an offer of ours on it
	paid := &admitted{version: payload.Version, rail: rail, signed: signed, identifier: payload.Identifier}
	if slices.Contains(rail.Ours, signed.From) {
		return paid, refusal.New(call.PaymentInvalid, "the payer is a wallet of this market").WithCause(payment.CodePayload)
	}
	if no := r.Target.Listed(); no != nil {
		return paid, no
	}
	if paid.offer, err = payment.Match(payload, offers, p.resource(r.Target).URL, payment.Extensions()); err != nil {
		return paid, asRefusal(err)
	}
	if err := p.Ready.Ready(ctx, paid.rail.Network.ID); err != nil {
		return paid, notReady(p.Now().Add(readyRetry), err)
	}
	head, err := paid.rail.Node.Head(ctx)
	if err != nil {
		return paid, notReady(p.Now().Add(readyRetry), err)
	}
	paid.block = head.Number
	if err := payment.CheckTerms(paid.signed, paid.offer, head.Time); err != nil {
		return paid, asRefusal(err)
	}
	return paid, nil
}

// acceptable returns every offer that a payment may match: the current price first, then those that were quoted a moment ago.
func (p *Path) acceptable(t catalog.Target) ([]payment.Offer, *refusal.Error) {
	var offers []payment.Offer
	for _, price := range t.Endpoint.Acceptable(p.Catalog.Current().MarketNow(p.Now())) {
		for _, rail := range p.Rails {
			offers = append(offers, railOffers(rail, t.Endpoint, price)...)
		}
	}
	if len(offers) == 0 {
		return nil, refusal.New(call.NotFound, "this endpoint has no price")
	}
	return offers, nil
}

// noPayment refuses a request that shows no payment which holds. What is not for sale is said to be that, and its terms are not offered.
func noPayment(r Request, err error) *refusal.Error {
	if no := r.Target.Listed(); no != nil {
		return no
	}
	return asRefusal(err)
}

// asRefusal keeps a refusal and turns anything else into a bare internal error.
func asRefusal(err error) *refusal.Error {
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		return no
	}
	return refusal.New(call.Internal, "").WithCause(err)
}
