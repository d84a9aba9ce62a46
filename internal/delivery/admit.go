package delivery

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/refusal"
)

// An admitted payment decodes, and its payer signed it, as far as there is no doubt. Whether it may pay for this call is another question.
type admitted struct {
	version payment.Version // that the request speaks, and is answered in
	rail    Rail
	offer   payment.Offer // zero where it answers none of ours
	signed  chain.Signed
	digest  common.Hash // that was signed
	// doubt is why the payer did not sign, unless the chain knows better; nil where it did. While there is one, nothing is claimed or told in the
	// payer's name.
	doubt error
	// simulated says that the very transfer went through when it was simulated for this request.
	simulated bool
	account   *chain.AccountState // of the payer, where it was read for this request
	block     uint64              // the head that it was checked at
	// identifier is the name that the caller gave the payment; empty for none.
	identifier string
}

// payer is the wallet that signed; the zero address where no payment came, or where there is a doubt.
func (a *admitted) payer() common.Address {
	if a == nil || a.doubt != nil {
		return common.Address{}
	}
	return a.signed.From
}

func (a admitted) identity() payment.Identity {
	return payment.Identity{Network: a.rail.Network.ID, Asset: a.signed.Asset, Payer: a.signed.From, Nonce: a.signed.Nonce}
}

// admit decodes the payment header, matches it to our own terms and verifies it: locally, but for a contract wallet's signature, which it asks
// about last. With a refusal it returns the payment as far as its signature holds, so that a payment that is known already is found before it is
// refused.
func (p *Path) admit(ctx context.Context, r Request) (*admitted, *refusal.Error) {
	payload, err := payment.FromHeaders(r.Header)
	if err != nil {
		return nil, p.noPayment(r, err)
	}
	payload = payload.Normalize(p.networks()...)
	known, offers, no := p.acceptable(r.Target)
	if no != nil {
		return nil, no
	}
	found, err := payment.Identify(payload, known...)
	if err != nil {
		return nil, p.noPayment(r, err)
	}
	payload = payload.In(found.Signed.Asset)
	rail, _ := p.rail(payload.Network) // Identify found an offer of ours on it
	paid := &admitted{version: payload.Version, rail: rail, signed: found.Signed, digest: found.Digest, doubt: found.Doubt, identifier: payload.Identifier}
	if slices.Contains(rail.Ours, paid.signed.From) {
		return paid, refusal.New(call.PaymentInvalid, "the payer is a wallet of this market").WithCause(payment.CodePayload)
	}
	if no := p.listed(r.Target); no != nil {
		return paid, no
	}
	if paid.offer, err = payment.Match(payload, offers, p.resource(r.Target).URL, p.advertised(ctx, r.Target)); err != nil {
		return paid, asRefusal(err)
	}
	if err := p.open(paid.rail, r.Target.Service, worth(paid.rail.Network, paid.signed)); err != nil {
		return paid, p.closed(err)
	}
	head, err := paid.rail.Node.Head(ctx)
	if err != nil {
		return paid, p.closed(err)
	}
	paid.block = head.Number
	if err := payment.CheckTerms(paid.signed, paid.offer, head.Time); err != nil {
		return paid, asRefusal(err)
	}
	if paid.doubt != nil {
		return paid, p.vouch(ctx, paid)
	}
	return paid, nil
}

// acceptable returns the offers that a payment may match: the current price first, then those that were quoted a moment ago. Known are those by which
// it is told who signed it, on every network: what a raised floor leaves out now may have been claimed before.
func (p *Path) acceptable(t catalog.Target) (known, offers []payment.Offer, no *refusal.Error) {
	for _, price := range t.Endpoint.Acceptable(p.Catalog.Current().MarketNow(p.Now())) {
		for _, rail := range p.Rails {
			known = append(known, railOffers(rail, t.Endpoint, price)...)
		}
		for _, rail := range p.offered(price) {
			offers = append(offers, railOffers(rail, t.Endpoint, price)...)
		}
	}
	if len(known) == 0 {
		return nil, nil, refusal.New(call.NotFound, "this endpoint has no price")
	}
	return known, offers, nil
}

// noPayment refuses a request that shows no payment which holds. What is not for sale is said to be that, and its terms are not offered.
func (p *Path) noPayment(r Request, err error) *refusal.Error {
	if no := p.listed(r.Target); no != nil {
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
