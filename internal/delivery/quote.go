package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/refusal"
)

// termsHoldMin is the shortest time for which terms are signed: less is of no use to anybody, and would make every request cost a signature.
const termsHoldMin = 10 * time.Second

// quotes keeps what is the same for all who ask for the price of an endpoint. It belongs to one snapshot of the catalog and is thrown away
// with it, so nothing in it can be of an older listing or price.
type quotes struct {
	of   *catalog.Snapshot
	mu   sync.RWMutex
	kept map[quoteKey]quote
}

// A quoteKey is an endpoint of the snapshot and the networks that can settle and refund now.
type quoteKey struct {
	endpoint *catalog.Endpoint
	networks string
}

// A quote is kept until the terms in it have to be signed anew.
type quote struct {
	bazaar    payment.Bazaar
	challenge payment.Challenge // zero where the path has parameters: then the challenge is of one path
	until     time.Time         // zero where nothing is signed: then it stands as long as its snapshot
}

// challenge returns the challenge of a target. Its terms are signed, which costs as much as the rest of an answer, once for all who ask within a
// quarter of the time that they hold, and never where the path has parameters: there each caller could ask for another signature.
func (p *Path) challenge(t catalog.Target, offers []payment.Offer) (payment.Challenge, *refusal.Error) {
	q, err := p.quoteOf(t, offers)
	if err == nil && len(t.Params) > 0 {
		q.challenge, err = payment.NewChallenge(p.resource(t), offers, payment.WithBazaar(q.bazaar))
	}
	switch {
	case errors.Is(err, payment.ErrChallengeTooBig) && len(t.Params) > 0:
		return payment.Challenge{}, refusal.New(call.InputTooLarge, "the path is too long for the terms that stand in a header with it")
	case err != nil:
		return payment.Challenge{}, refusal.New(call.Internal, "").WithCause(err)
	}
	return q.challenge, nil
}

// advertised is what the challenge of a target says of its extensions, for payments that echo it. Where nobody is asked to pay at the moment it is
// what every challenge says: a payment that was signed before is not held to more.
func (p *Path) advertised(ctx context.Context, t catalog.Target) payment.Advertised {
	offers, no := p.offers(ctx, t)
	if no != nil {
		return payment.Extensions()
	}
	challenge, no := p.challenge(t, offers)
	if no != nil {
		return payment.Extensions()
	}
	return challenge.Infos()
}

func (p *Path) quoteOf(t catalog.Target, offers []payment.Offer) (quote, error) {
	key := quoteKey{t.Endpoint, networksOf(offers)}
	kept := p.quotesOf(p.Catalog.Current())
	now := p.Now()
	kept.mu.RLock()
	q, found := kept.kept[key]
	kept.mu.RUnlock()
	if found && (q.until.IsZero() || now.Before(q.until)) {
		return q, nil
	}
	q, err := p.newQuote(t, offers, now)
	if err != nil {
		return quote{}, err
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.kept[key] = q
	return q, nil
}

// quotesOf returns what is kept of a snapshot, and forgets that of the one before.
func (p *Path) quotesOf(s *catalog.Snapshot) *quotes {
	kept := p.quotes.Load()
	if kept == nil || kept.of != s {
		kept = &quotes{of: s, kept: map[quoteKey]quote{}}
		p.quotes.Store(kept)
	}
	return kept
}

// newQuote signs terms that are kept: a price that changes a moment later stays acceptable for the quote validity, and the terms hold for
// half of that, so that a replica that hears of the change late has promised nothing that is not kept.
func (p *Path) newQuote(t catalog.Target, offers []payment.Offer, now time.Time) (quote, error) {
	holds := p.QuoteValidity / 2
	q := quote{bazaar: payment.NewBazaar(p.listing(t.Service.Slug, t.Endpoint))}
	if len(t.Params) > 0 {
		return q, nil
	}
	r := p.resource(t)
	if holds < termsHoldMin {
		var err error
		q.challenge, err = payment.NewChallenge(r, offers, payment.WithBazaar(q.bazaar))
		return q, err
	}
	q.until = now.Add(holds / 2)
	signed, err := payment.SignTerms(p.Notary, r, offers, uint64(now.Add(holds).Unix())) //nolint:gosec // a clock after 1970
	if err != nil {
		return quote{}, err
	}
	q.challenge, err = payment.NewChallenge(r, offers, payment.WithBazaar(q.bazaar), payment.WithSigned(signed))
	return q, err
}

func networksOf(offers []payment.Offer) string {
	var names []string
	for _, o := range offers {
		if !slices.Contains(names, o.Network) {
			names = append(names, o.Network)
		}
	}
	return strings.Join(names, " ")
}

// listing is what catalogues are told of an endpoint.
func (p *Path) listing(slug string, e *catalog.Endpoint) payment.Listing {
	return payment.Listing{
		Method: e.Method, Path: "/s/" + slug + e.Path, TakesBody: catalog.TakesBody(e.Method), MIMEType: e.MIMEType,
		InputSchema: e.InputSchema, InputExample: e.InputExample, OutputSchema: e.OutputSchema, OutputExample: e.OutputExample,
	}
}

// Warnings says, to the owner of a listing, what its challenges leave out on all networks together, and what else may surprise. A path
// with parameters is judged as it is listed: a longer one leaves less room.
func (p *Path) Warnings(s *catalog.Service, e *catalog.Endpoint) []string {
	price, priced := e.Price()
	if !priced || e.Retired {
		return nil
	}
	warnings := slices.Concat(e.Warnings(), p.belowFloor(price), p.aboveBurst(price))
	offers := p.Terms(e, price)
	t := catalog.Target{Service: s, Endpoint: e, UpstreamPath: strings.NewReplacer("{", "", "}", "").Replace(e.Path)}
	bazaar := payment.NewBazaar(p.listing(s.Slug, e))
	more := []payment.Addition{payment.WithBazaar(bazaar)}
	if !strings.Contains(e.Path, "{") {
		signed, err := payment.SignTerms(p.Notary, p.resource(t), offers, uint64(p.Now().Unix())) //nolint:gosec // as above
		if err != nil {
			return append(warnings, "the terms could not be signed")
		}
		more = append(more, payment.WithSigned(signed))
	}
	challenge, err := payment.NewChallenge(p.resource(t), offers, more...)
	if err != nil {
		return append(warnings, fmt.Sprintf("nobody can be asked to pay: %s", err))
	}
	return slices.Concat(warnings, challenge.LeftOut(), bazaar.Notes())
}

// aboveBurst says that a price is above what is settled at once, so that no call is sold at it.
func (p *Path) aboveBurst(price catalog.Price) []string {
	most := p.Ready.Burst()
	if most == 0 || money.MicroUSD(price.USD) <= most {
		return nil
	}
	return []string{fmt.Sprintf("no call is sold at this price: this market settles at most %s USD at once", decimal.New(most, -6))}
}

// Terms are what an endpoint costs, on all networks, whether or not they can settle at the moment: what a listing shows, and nobody is asked to pay.
func (p *Path) Terms(e *catalog.Endpoint, price catalog.Price) []payment.Offer {
	var offers []payment.Offer
	for _, rail := range p.offered(price) {
		offers = append(offers, railOffers(rail, e, price)...)
	}
	return offers[:min(len(offers), offersMax)]
}
