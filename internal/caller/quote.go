package caller

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/ethereum/go-ethereum/common"
	"github.com/shopspring/decimal"

	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
)

// lifeSecondsMax is the longest that a server may ask us to keep an authorization valid.
const lifeSecondsMax = 3600

// A Quote is what a server asks for one call.
type Quote struct {
	Network           string // CAIP-2
	Asset             Asset
	Amount            money.Amount
	USD               decimal.Decimal
	PayTo             common.Address
	MaxTimeoutSeconds int64
	Resource          string // as the server names what it sells
	Description       string
}

func (q Quote) String() string {
	return fmt.Sprintf("%s USD (%s base units of %s) on %s to %s", q.USD, q.Amount, q.Asset.Symbol, q.Network, q.PayTo)
}

// ErrNoOffer is a challenge without an entry that this client can pay.
var ErrNoOffer = errors.New("the server offers no way to pay that this client knows")

// An offer is the chosen entry with all that is needed to sign it.
type offer struct {
	quote    Quote
	accepted payment.Accepted
	domain   chain.Domain
}

// choose takes the first entry that it can pay: the server's order is its preference.
func (c *Client) choose(r payment.Required) (offer, error) {
	why := make([]string, 0, len(r.Accepts))
	for i, accepted := range r.Accepts {
		o, reason := c.understand(accepted)
		if reason != "" {
			why = append(why, fmt.Sprintf("entry %d: %s", i+1, reason))
			continue
		}
		o.quote.Resource, o.quote.Description = printable(r.URL), printable(r.Description)
		return o, nil
	}
	if r.Unreadable > 0 {
		why = append(why, strconv.Itoa(r.Unreadable)+" for other kinds of chains")
	}
	if len(why) == 0 {
		return offer{}, ErrNoOffer
	}
	return offer{}, fmt.Errorf("%w (%s)", ErrNoOffer, strings.Join(why, "; "))
}

// understand returns why an entry can not be paid, or the empty string.
func (c *Client) understand(a payment.Accepted) (offer, string) {
	chainID, err := strconv.ParseUint(strings.TrimPrefix(a.Network, "eip155:"), 10, 64)
	if err != nil || !strings.HasPrefix(a.Network, "eip155:") {
		return offer{}, "another kind of chain"
	}
	if a.Scheme != "exact" {
		return offer{}, "another scheme than exact"
	}
	if method, ok := a.Extra("assetTransferMethod"); ok && method != "eip3009" {
		return offer{}, "another transfer method than EIP-3009"
	}
	if flow, ok := a.Extra("paymentFlow"); ok && flow != "upfront" && flow != "authorization" {
		return offer{}, "an unknown payment flow"
	}
	asset, ok := c.assetFor(a.Network, a.Asset)
	if !ok {
		return offer{}, "a token whose worth is not known: " + a.Asset.Hex() + " on " + a.Network
	}
	name, named := a.Extra("name")
	version, versioned := a.Extra("version")
	switch {
	case !named || !versioned:
		return offer{}, "no EIP-712 name and version of the token"
	case a.Amount.IsZero() || a.PayTo == (common.Address{}):
		return offer{}, "nothing to pay, or nobody to pay to"
	case a.MaxTimeoutSeconds < 1 || a.MaxTimeoutSeconds > lifeSecondsMax:
		return offer{}, fmt.Sprintf("an authorization must live 1 to %d s", lifeSecondsMax)
	}
	return offer{
		accepted: a,
		domain:   chain.NewDomain(chain.Asset{Address: a.Asset, EIP712Name: name, EIP712Version: version}, chainID),
		quote: Quote{Network: a.Network, Asset: asset, Amount: a.Amount, USD: a.Amount.USD(asset.Decimals), PayTo: a.PayTo,
			MaxTimeoutSeconds: a.MaxTimeoutSeconds},
	}, ""
}

// printable keeps a server's text from moving the cursor or colouring the terminal that shows it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
