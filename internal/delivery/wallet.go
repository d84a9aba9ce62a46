package delivery

import (
	"context"
	"errors"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/refusal"
)

// vouch clears the doubt about a payment that its payer's key did not sign, or refuses it: a contract wallet has no key, and what it takes for its
// word only the chain can tell. Until that is settled nothing is claimed under the payer's name, or anybody could use up its nonces. A forged
// payment costs two reads of the node at most, and none where its terms do not fit.
func (p *Path) vouch(ctx context.Context, paid *admitted) *refusal.Error {
	known, err := p.recognise(ctx, paid)
	switch {
	case err != nil:
		return asRefusal(err)
	case paid.doubt == nil:
		return nil
	case known:
		// Once the nonce is used no transfer can be simulated, and two signatures of one payment are none of an honest client's.
		return refusal.New(call.PaymentReused, "a payment with this nonce of this payer is known here with another signature: send it as it was first sent")
	}
	if no := p.askWallet(ctx, paid); no != nil {
		return no
	}
	paid.doubt = nil
	return nil
}

// recognise clears the doubt where these very bytes were claimed before: the wallet answered for them then, and after the transfer it may not any
// more. known says that the payment has a call that it can not be taken from.
func (p *Path) recognise(ctx context.Context, paid *admitted) (known bool, err error) {
	c, err := p.payments.Find(ctx, p.DB, paid.identity())
	switch {
	case errors.Is(err, payment.ErrUnclaimed):
		return false, nil
	case err != nil:
		return false, err
	}
	if c.Shown(paid.signed) {
		paid.doubt = nil
	}
	return c.State != call.StateReleased, nil
}

// askWallet refuses a payment whose payer is no contract wallet that takes the signature.
func (p *Path) askWallet(ctx context.Context, paid *admitted) *refusal.Error {
	s := paid.signed
	account, err := paid.rail.Node.Account(ctx, s.Asset, s.From, s.Nonce)
	switch {
	case err != nil:
		return p.closed(err)
	case !account.HasCode:
		return asRefusal(paid.doubt)
	case !account.NonceUsed:
		paid.account = &account
		return p.simulate(ctx, paid)
	}
	// The nonce may be used by the very transfer that pays us, which the settlement looks for. No transfer can be simulated any more, so the wallet
	// is asked itself.
	takes, err := paid.rail.Node.Takes(ctx, s.From, paid.digest, s.Signature)
	switch {
	case err != nil:
		return p.closed(err)
	case !takes:
		return untaken()
	}
	return nil
}

// simulate refuses a payment whose transfer would not go through: the exact call that would be broadcast, as the token checks it with an account
// that has code. What such code does on the chain is another matter, and its own risk.
func (p *Path) simulate(ctx context.Context, paid *admitted) *refusal.Error {
	err := paid.rail.Node.Simulate(ctx, paid.rail.Gas, chain.SettleGas, paid.signed)
	if err == nil {
		paid.simulated = true
		return nil
	}
	revert, ok := errors.AsType[*chain.Revert](err)
	if !ok {
		return p.closed(err)
	}
	switch revert.Kind {
	case chain.RevertNonceUsed:
		// It was used a moment ago; the next try finds out by what.
		return refusal.New(call.NotReady, "this payment was used a moment ago; send the same one again in a few seconds, and it is found").
			WithUntil(p.Now().Add(readyRetry)).WithCause(err)
	case chain.RevertPaused:
		return p.closed(err)
	case chain.RevertInsufficient:
		return unfunded()
	case chain.RevertBadSignature:
		return untaken()
	case chain.RevertExpired, chain.RevertNotYetValid, chain.RevertBlocked, chain.RevertUnclear:
	}
	return refusal.New(call.PaymentInvalid, "the token refuses this payment: %s", revert.Code()).WithCause(payment.Code(revert.Code()))
}

func untaken() *refusal.Error {
	return refusal.New(call.PaymentInvalid, "the payer's account has code, and the token finds that this code does not take the signature: "+
		"of such an account ERC-1271 counts, also where its key has signed").WithCause(payment.CodeSignature)
}

func unfunded() *refusal.Error {
	return refusal.New(call.PayerUnfunded, "the payer holds less than the price").WithCause(payment.CodeFunds)
}
