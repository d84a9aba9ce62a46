package payment

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// descriptionBytesKept is how much of a description stays before anything that catalogues or clients read goes for it.
const descriptionBytesKept = 120

// An Addition says more in a challenge than how to pay, as far as the header has room.
type Addition func(*additions)

type additions struct {
	bazaar Bazaar
	offers []Signed
}

// WithBazaar adds what catalogues read.
func WithBazaar(b Bazaar) Addition { return func(a *additions) { a.bazaar = b } }

// WithSigned adds the terms signed by the wallet that takes the money, one for each entry of accepts, in its order: see SignTerms.
func WithSigned(offers []Signed) Addition { return func(a *additions) { a.offers = offers } }

// SignTerms signs each offer for a resource until a time in Unix seconds. It returns nothing where one of the wallets can not sign.
func SignTerms(n Notary, r Resource, offers []Offer, until uint64) ([]Signed, error) {
	var all []Signed
	for _, o := range offers {
		s, err := n.SignFor(o.PayTo, SignedTerms{Version: statementVersion, ResourceURL: r.URL, Scheme: scheme, Network: o.Network,
			Asset: o.Asset.Address.Hex(), PayTo: o.PayTo.Hex(), Amount: o.Amount.String(), ValidUntil: until})
		if err != nil {
			return nil, fmt.Errorf("sign terms: %w", err)
		}
		if s == nil {
			return nil, nil
		}
		all = append(all, *s)
	}
	return all, nil
}

// An extension is one member of a challenge's extensions.
type extension struct {
	key         string
	declaration json.RawMessage
	static      bool // its info has to come back as it is; that of the others changes from challenge to challenge
}

// A filling is a choice of what a challenge holds beside its terms.
type filling struct {
	extensions  []extension
	description int // bytes of it that have to stay for this choice
	without     []string
}

// fillings are what is tried, in this order, until one fits the header. The description is cut first, down to a sentence that still says
// what is sold. Then go the signed terms, which repeat what accepts says and which nobody needs to pay; then the schemas of the bazaar
// declaration, which the catalog has too, then the declaration; last the payment-identifier, with which a caller gets its answer again.
func (a additions) fillings(descriptionBytes int) []filling {
	identifier := extension{identifierKey, json.RawMessage(identifierDeclaration), true}
	sentence := min(descriptionBytes, descriptionBytesKept)
	all := []filling{
		{[]extension{identifier}, 0, nil},
		{nil, 0, []string{"the challenge has no room for payment-identifier: callers can not name their payments"}},
	}
	last := all[0]
	if full := a.bazaar.Full(); full != nil {
		const noBazaar = "the challenge has no room for the bazaar declaration"
		last.without, all[0].without = nil, []string{noBazaar}
		all[1].without = append(all[1].without, noBazaar)
		brief := filling{[]extension{identifier, {bazaarKey, a.bazaar.Brief(), true}}, sentence,
			[]string{"the challenge has no room for the schemas of the bazaar declaration: it has the examples only"}}
		last = filling{[]extension{identifier, {bazaarKey, full, true}}, sentence, nil}
		all = append([]filling{last, brief}, all...)
	}
	if len(a.offers) > 0 {
		const noOffers = "the challenge has no room for the signed terms (offer-receipt)"
		for i := range all {
			all[i].without = append(all[i].without, noOffers)
		}
		signed := last
		signed.extensions = append(append([]extension{}, last.extensions...), extension{receiptKey, declareSigned(a.offers), false})
		signed.description = sentence
		all = append([]filling{signed}, all...)
	}
	return all
}

// declareSigned is the extension's declaration in a challenge.
func declareSigned(offers []Signed) json.RawMessage {
	type indexed struct {
		Format      string    `json:"format"`
		AcceptIndex int       `json:"acceptIndex"`
		Payload     Statement `json:"payload"`
		Signature   string    `json:"signature"`
	}
	list := make([]indexed, len(offers))
	for i, s := range offers {
		list[i] = indexed{s.Format, i, s.Payload, s.Signature}
	}
	return encodeJSON(map[string]any{
		"info":   map[string]any{"offers": list},
		"schema": json.RawMessage(`{"type":"object","properties":{"offers":{"type":"array"}},"required":["offers"]}`),
	})
}

// encodeExtensions writes the extensions in their order; nil for none.
func encodeExtensions(all []extension) json.RawMessage {
	if len(all) == 0 {
		return nil
	}
	members := make([]string, len(all))
	for i, e := range all {
		members[i] = strconv.Quote(e.key) + ":" + string(e.declaration)
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

// fill chooses what the challenge holds.
func (c *Challenge) fill(a additions) error {
	whole := strings.ToValidUTF8(c.resource.Description, "")
	if !c.fits("") {
		return ErrChallengeTooBig
	}
	for _, f := range a.fillings(len(whole)) {
		c.extensions, c.chosen = encodeExtensions(f.extensions), f
		if len(whole) <= f.description && c.fits(whole) || c.fits(cut(whole, f.description)) {
			break
		}
	}
	description, err := c.fittingDescription(whole)
	if err != nil {
		return err
	}
	c.resource.Description = description
	if description != whole {
		c.chosen.without = append([]string{fmt.Sprintf("the challenge has room for %d of the %d characters of the description",
			utf8.RuneCountInString(strings.TrimSuffix(description, ellipsis)), utf8.RuneCountInString(whole))}, c.chosen.without...)
	}
	return nil
}

// LeftOut says, to the owner of the listing, what the challenge has no room for.
func (c Challenge) LeftOut() []string { return c.chosen.without }

// Infos returns the `info` of each extension that the challenge advertises and that a payment has to bring back as a part of its own, by
// the extension's name. One whose info differs from challenge to challenge is not in it.
func (c Challenge) Infos() map[string]json.RawMessage {
	infos := map[string]json.RawMessage{}
	for _, e := range c.chosen.extensions {
		var declared struct {
			Info json.RawMessage `json:"info"`
		}
		if e.static && json.Unmarshal(e.declaration, &declared) == nil {
			infos[e.key] = declared.Info
		}
	}
	return infos
}

// Offers returns the terms of the challenge, in its order.
func (c Challenge) Offers() []Offer { return append([]Offer{}, c.offers...) }
