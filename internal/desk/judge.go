package desk

import (
	"context"
	"errors"
	"fmt"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/refusal"
)

const (
	scheme = "exact" // all that is settled here
	// lifeSecondsMin is what the official facilitators ask for: about three blocks of a fast chain.
	lifeSecondsMin = 6
	// offerSecondsMax is the longest timeout of an offer. How long a seller lets its own call take is nothing to us.
	offerSecondsMax = 3600
)

// A Rail is one network that payments are settled on.
type Rail struct {
	Network chain.Network
	Node    Node
	Engine  Engine
}

// A Node tells the time of the chain.
type Node interface {
	Head(ctx context.Context) (chain.Head, error)
}

// An Engine moves the money; facilitator.Engine is one.
type Engine interface {
	Simulate(ctx context.Context, s chain.Signed) error
	Shown(ctx context.Context, s chain.Signed) (bool, error)
	Settle(ctx context.Context, s chain.Signed) chain.Settlement
}

// identify checks everything of a request that needs no chain, in the order of the official facilitators: the seller's terms are ones that we
// settle, and the payer signed exactly what the seller asks for. Every error is a refusal.
func (d *Desk) identify(rq request) (Rail, chain.Signed, error) {
	r, offer, err := d.offer(rq)
	if err != nil {
		return Rail{}, chain.Signed{}, err
	}
	p := rq.payload.Normalize(r.Network)
	signed, err := payment.Identify(p, offer)
	if err != nil {
		return r, chain.Signed{}, err
	}
	if err := payment.CheckTransfer(signed, offer); err != nil {
		return r, signed, err
	}
	if a := p.Accepted; p.Version == payment.V2 && (a.PayTo != offer.PayTo || a.Amount.Cmp(offer.Amount) != 0) {
		return r, signed, invalid(payment.CodeRequirements, "accepted names another recipient or amount than paymentRequirements.")
	}
	return r, signed, nil
}

// offer reads the seller's terms as an offer of ours. Its domain is the configured one: a seller that names another would have us refuse
// good payments, or accept what the token will not.
func (d *Desk) offer(rq request) (Rail, payment.Offer, error) {
	p, q := rq.payload, rq.required
	name, named := q.Extra("name")
	version, versioned := q.Extra("version")
	r, known := d.rail(p.Version, q.Network)
	asset, ours := r.Network.Asset(q.Asset)
	switch {
	case p.Scheme != scheme || q.Scheme != scheme:
		return r, payment.Offer{}, invalid(codeScheme, "scheme must be %q in the payment and in paymentRequirements.", scheme)
	case !named || name == "" || !versioned || version == "":
		return r, payment.Offer{}, invalid(payment.CodeDomainMissing, "paymentRequirements.extra must have the token's EIP-712 name and version.")
	case p.Network != q.Network:
		return r, payment.Offer{}, invalid(codeNetwork, "The payment is for another network than paymentRequirements.network.")
	case !known:
		return r, payment.Offer{}, invalid(payment.CodeNetwork, "paymentRequirements.network is none that is settled here: see /supported.")
	case !ours:
		return r, payment.Offer{}, invalid(payment.CodeRequirements, "paymentRequirements.asset is no token that is settled here on %s.", r.Network.ID)
	case p.Version == payment.V2 && p.Asset != q.Asset:
		return r, payment.Offer{}, invalid(payment.CodeRequirements, "accepted.asset is another token than paymentRequirements.asset.")
	case name != asset.EIP712Name:
		return r, payment.Offer{}, invalid(payment.CodeDomainName, "paymentRequirements.extra.name must be %q: that is the token's own EIP-712 name on %s.", asset.EIP712Name, r.Network.ID)
	case version != asset.EIP712Version:
		return r, payment.Offer{}, invalid(payment.CodeDomainVersion, "paymentRequirements.extra.version must be %q: that is the token's own EIP-712 version on %s.", asset.EIP712Version, r.Network.ID)
	}
	o, err := payment.NewOffer(r.Network, asset, q.Amount, q.PayTo, int(min(q.MaxTimeoutSeconds, offerSecondsMax)), 0)
	if err != nil {
		return r, payment.Offer{}, invalid(payment.CodeRequirements, "paymentRequirements must have an amount, a recipient and a timeout other than 0.")
	}
	return r, o, nil
}

// rail finds a network by the name that a version of x402 gives it.
func (d *Desk) rail(version payment.Version, network string) (Rail, bool) {
	for _, r := range d.rails {
		if network != "" && network == version.NetworkName(r.Network) {
			return r, true
		}
	}
	return Rail{}, false
}

// checkLife checks the time of an authorization against the chain's. An error that is no refusal is trouble of the node.
func checkLife(ctx context.Context, r Rail, s chain.Signed) error {
	head, err := r.Node.Head(ctx)
	if err != nil {
		return fmt.Errorf("read the time of %s: %w", r.Network.ID, err)
	}
	return payment.CheckLife(s, head.Time, lifeSecondsMin)
}

// simulate asks the asset whether it would move the money now. An error that is no refusal is trouble of ours.
func simulate(ctx context.Context, r Rail, s chain.Signed) error {
	err := r.Engine.Simulate(ctx, s)
	if revert, ok := errors.AsType[*chain.Revert](err); ok {
		return invalid(payment.Code(revert.Code()), "The token refuses this transfer: %s", revert.Text)
	}
	return err
}

func invalid(code payment.Code, format string, args ...any) error {
	return refusal.New(call.PaymentInvalid, format, args...).WithCause(code)
}
