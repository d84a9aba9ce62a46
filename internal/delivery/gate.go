package delivery

import (
	"context"
	"time"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/refusal"
)

const (
	// offerLife is maxTimeoutSeconds of our terms, unless the endpoint's own timeout needs more.
	offerLife   = 120 * time.Second
	offersMax   = 3
	offerMargin = 60 * time.Second
)

// Quote is what an unpaid request gets: the challenge, or why nobody is asked to pay now. It waits for no upstream and writes nothing.
func (p *Path) Quote(ctx context.Context, r Request) (payment.Challenge, *refusal.Error) {
	if no := p.listed(r.Target); no != nil {
		return payment.Challenge{}, no
	}
	if no := carried(r); no != nil {
		return payment.Challenge{}, no
	}
	if rest := p.Board.Remaining(r.Target.Service.ID); rest > 0 {
		return payment.Challenge{}, coolingDown(p.Now().Add(rest))
	}
	if v, known := p.Prober.Last(r.Target.Service); known && !v.Live {
		p.Prober.Wanted(r.Target.Service)
		return payment.Challenge{}, p.notAlive(v)
	}
	if no := p.full(r); no != nil {
		return payment.Challenge{}, no
	}
	offers, no := p.offers(ctx, r.Target)
	if no != nil {
		return payment.Challenge{}, no
	}
	challenge, no := p.challenge(r.Target, offers)
	if no == nil {
		p.askedToPay()
	}
	return challenge, no
}

// listed refuses a target that is not for sale: for good, or until somebody has put it back, which nobody knows how to date.
func (p *Path) listed(t catalog.Target) *refusal.Error {
	no := t.Listed()
	switch {
	case no == nil:
		return nil
	case t.Service.State.Returns():
		return no.WithUntil(p.Now().Add(awayRetry))
	case t.Service.State.Sells() && !t.Endpoint.Retired:
		return no.WithUntil(p.Now().Add(brokenRetry))
	}
	return no
}

// offers returns our current terms for an endpoint, on every network that takes its price and can settle and refund now.
func (p *Path) offers(ctx context.Context, t catalog.Target) ([]payment.Offer, *refusal.Error) {
	price, priced := t.Endpoint.Price()
	if !priced {
		return nil, refusal.New(call.NotFound, "this endpoint has no price")
	}
	var (
		offers []payment.Offer
		causes []error
	)
	for _, rail := range p.offered(price) {
		if err := p.open(ctx, rail, t.Service); err != nil {
			causes = append(causes, err)
			continue
		}
		offers = append(offers, railOffers(rail, t.Endpoint, price)...)
	}
	if len(offers) == 0 {
		return nil, p.closed(soonest(causes))
	}
	return offers[:min(len(offers), offersMax)], nil
}

// railOffers returns the terms of one price on one network. An asset that cannot express the price is left out: a listing that none can
// express is refused when it is made, but assets may be configured later.
func railOffers(rail Rail, e *catalog.Endpoint, price catalog.Price) []payment.Offer {
	var offers []payment.Offer
	life := offerLife
	if !e.Stream { // which may last long, and is paid for before it begins
		life = max(life, e.Timeout+offerMargin)
	}
	seconds := int(life.Seconds())
	for _, asset := range rail.Network.Assets {
		amount, err := money.FromUSD(price.USD, asset.Decimals)
		if err != nil {
			continue
		}
		offer, err := payment.NewOffer(rail.Network, asset, amount, rail.Treasury, seconds, price.Revision)
		if err != nil {
			continue
		}
		offers = append(offers, offer)
	}
	return offers
}

func (p *Path) resource(t catalog.Target) payment.Resource {
	return payment.Resource{
		URL:         p.resourceURL(t.Service.Slug, t.UpstreamPath),
		Description: describe(t.Endpoint.Description, t.Endpoint.Stream),
		MimeType:    t.Endpoint.MIMEType,
	}
}

func coolingDown(until time.Time) *refusal.Error {
	return refusal.New(call.InCooldown, "the service failed a moment ago and rests before it gets work again").WithUntil(until)
}
