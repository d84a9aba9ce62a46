package payment

import (
	"math"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/money"
)

const (
	// lifeSecondsMin is what an authorization must have left when it is admitted, so that it does not lapse on its way to the chain.
	lifeSecondsMin = 30
	// slackSeconds forgives a client's clock that is fast. An authorization that lives longer than the offer and this would keep a
	// call open for longer than we promise.
	slackSeconds = 15 * 60
)

// secondsMax is the latest time that we keep; later ones are outside of any window that CheckTerms allows.
var secondsMax = big.NewInt(math.MaxInt64)

// Identify checks that the payer signed the authorization, in the domain of the first offer of its network and asset. The domain is
// always ours. Version 1 does not name the asset: it is the one among our offers on that network in whose domain the signature holds. A
// signed payment identifies a call, whether or not its terms fit: see CheckTerms. The error is a refusal for payment_invalid, or for
// payment_mismatch where no offer is of the payment's network and asset.
func Identify(p Payload, offers ...Offer) (chain.Signed, error) {
	candidates := p.candidates(offers)
	if len(candidates) == 0 {
		if p.Version == V1 {
			return chain.Signed{}, mismatch(CodeNetwork, "network is none that this endpoint can be paid on.")
		}
		return chain.Signed{}, mismatch(CodeNetwork, "accepted names a network and asset that this endpoint can not be paid in.")
	}
	var refused error
	for _, o := range candidates {
		signed, err := identify(p, o)
		if err == nil {
			return signed, nil
		}
		if refused == nil {
			refused = err // of the asset that we prefer
		}
	}
	return chain.Signed{}, refused
}

// candidates returns an offer for each asset that the payment may be in: they differ in their domains. An offer that it pays to the unit comes
// before others, since whoever pays in version 1 read that offer.
func (p Payload) candidates(offers []Offer) []Offer {
	unnamed := p.Version == V1 && p.Asset == (common.Address{})
	var paid, others []Offer
	for _, o := range offers {
		switch {
		case p.Network != o.Network || !unnamed && p.Asset != o.Asset.Address:
		case unnamed && compareSigned(p, o) == same:
			paid = append(paid, o)
		default:
			others = append(others, o)
		}
	}
	var found []Offer
	for _, o := range slices.Concat(paid, others) {
		if !slices.ContainsFunc(found, func(f Offer) bool { return f.Asset.Address == o.Asset.Address }) {
			found = append(found, o)
		}
	}
	return found
}

func identify(p Payload, o Offer) (chain.Signed, error) {
	if p.From == (common.Address{}) {
		return chain.Signed{}, invalid(CodeSignature, "The payer is the zero address, which can not sign.")
	}
	// Such an authorization can never have been admitted, so there is no call to look up and no need to hash it.
	after, ok := seconds(p.ValidAfter)
	if !ok {
		return chain.Signed{}, invalid(CodeValidAfter, "authorization.validAfter is no time in seconds.")
	}
	before, ok := seconds(p.ValidBefore)
	if !ok {
		return chain.Signed{}, invalid(CodeValidBefore, "authorization.validBefore is no time in seconds.")
	}
	a := chain.Authorization{From: p.From, To: p.To, Value: p.Value, ValidAfter: after, ValidBefore: before, Nonce: p.Nonce}
	signer, err := chain.Recover(o.domain.Digest(a), p.Signature)
	if err != nil || signer != p.From {
		return chain.Signed{}, invalid(CodeSignature,
			"The signature is not the payer's over this authorization in the token's EIP-712 domain (name %q, version %q, chainId %d, verifyingContract %s). "+
				"A wallet that signs in another domain, or in an empty one, gives such a signature; contract wallets are not supported yet.",
			o.Asset.EIP712Name, o.Asset.EIP712Version, o.ChainID, o.Asset.Address)
	}
	return chain.Signed{Asset: o.Asset.Address, Authorization: a, Signature: p.Signature}, nil
}

func seconds(n money.Amount) (uint64, bool) {
	v := n.Big()
	if v.Cmp(secondsMax) > 0 {
		return 0, false
	}
	return v.Uint64(), true
}

// CheckTerms checks that an authorization pays the offer: us, its price to the unit, and in a window that holds chainTime (the timestamp of
// the newest block that our node knows) with enough left to settle and not more than we keep a call open. The error is a refusal for
// payment_invalid.
func CheckTerms(s chain.Signed, o Offer, chainTime uint64) error {
	if err := CheckTransfer(s, o); err != nil {
		return err
	}
	if err := CheckLife(s, chainTime, lifeSecondsMin); err != nil {
		return err
	}
	latest := chainTime + uint64(o.MaxTimeoutSeconds) + slackSeconds //nolint:gosec // NewOffer bounds the timeout
	if s.ValidBefore > latest {
		return invalid(CodeValidBefore, "authorization.validBefore must not be after %d: the chain's time, maxTimeoutSeconds and %d s.", latest, slackSeconds)
	}
	return nil
}

// CheckTransfer checks that an authorization moves what the offer asks for: its asset, to its recipient, to the unit. The error is a refusal
// for payment_invalid.
func CheckTransfer(s chain.Signed, o Offer) error {
	switch {
	case s.Asset != o.Asset.Address:
		return invalid(CodeRequirements, "The authorization is of another asset than the offer.")
	case s.To != o.PayTo:
		return invalid(CodeRecipient, "authorization.to must be %s.", o.PayTo)
	case s.Value.Cmp(o.Amount) != 0:
		return invalid(CodeValue, "authorization.value must be exactly %s.", o.Amount)
	}
	return nil
}

// CheckLife checks that an authorization is valid at chainTime and for so many seconds more. The error is a refusal for payment_invalid.
func CheckLife(s chain.Signed, chainTime, secondsLeft uint64) error {
	switch {
	case s.ValidBefore < chainTime+secondsLeft:
		return invalid(CodeValidBefore,
			"authorization.validBefore must be at least %d s after the time of the chain, which is %d.", secondsLeft, chainTime)
	case s.ValidAfter >= chainTime:
		return invalid(CodeValidAfter, "The authorization is not valid yet: authorization.validAfter must be before the time of the chain, which is %d.", chainTime)
	}
	return nil
}
