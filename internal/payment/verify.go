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

// An Identified payment names a payer and a call. Whether the payer stands behind it is certain only without a Doubt.
type Identified struct {
	Signed chain.Signed
	Digest common.Hash // what the payer signs
	// Doubt is nil where the payer's own key signed. Else it is the refusal that holds unless the payer is an account with code that takes the
	// signature: only the chain can tell, and until it has told nothing may be done in the payer's name.
	Doubt error
}

// Identify checks who signed the authorization, in the domain of the first offer of its network and asset. The domain is always ours. Version 1 does not
// name the asset: it is the one among our offers on that network in whose domain the payer's key signed, and where no key did, the one that we
// prefer. A signed payment identifies a call, whether or not its terms fit: see CheckTerms. The error is a refusal for payment_invalid, or for
// payment_mismatch where no offer is of the payment's network and asset.
func Identify(p Payload, offers ...Offer) (Identified, error) {
	candidates := p.candidates(offers)
	if len(candidates) == 0 {
		if p.Version == V1 {
			return Identified{}, mismatch(CodeNetwork, "network is none that this endpoint can be paid on.")
		}
		return Identified{}, mismatch(CodeNetwork, "accepted names a network and asset that this endpoint can not be paid in.")
	}
	preferred, err := identify(p, candidates[0])
	if err != nil || preferred.Doubt == nil {
		return preferred, err
	}
	for _, o := range candidates[1:] {
		if found, err := identify(p, o); err == nil && found.Doubt == nil {
			return found, nil
		}
	}
	return preferred, nil
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

func identify(p Payload, o Offer) (Identified, error) {
	if p.From == (common.Address{}) {
		return Identified{}, invalid(CodeSignature, "The payer is the zero address, which can not sign.")
	}
	// Such an authorization can never have been admitted, so there is no call to look up and no need to hash it.
	after, ok := seconds(p.ValidAfter)
	if !ok {
		return Identified{}, invalid(CodeValidAfter, "authorization.validAfter is no time in seconds.")
	}
	before, ok := seconds(p.ValidBefore)
	if !ok {
		return Identified{}, invalid(CodeValidBefore, "authorization.validBefore is no time in seconds.")
	}
	a := chain.Authorization{From: p.From, To: p.To, Value: p.Value, ValidAfter: after, ValidBefore: before, Nonce: p.Nonce}
	found := Identified{Signed: chain.Signed{Asset: o.Asset.Address, Authorization: a, Signature: p.Signature}, Digest: o.domain.Digest(a)}
	if signer, err := chain.Recover(found.Digest, p.Signature); err != nil || signer != p.From {
		found.Doubt = p.doubt(o)
	}
	return found, nil
}

// doubt is why a payer without code did not sign the payment.
func (p Payload) doubt(o Offer) error {
	if p.undeployed {
		return invalid(CodeUndeployed, "The payer is a contract wallet that is not deployed, and this server deploys none. Deploy it first, with any transaction of its own.")
	}
	return invalid(CodeSignature,
		"The signature is not the payer's over this authorization in the token's EIP-712 domain (name %q, version %q, chainId %d, verifyingContract %s). "+
			"A wallet that signs in another domain, or in an empty one, gives such a signature. No contract wallet is deployed at the payer's address.",
		o.Asset.EIP712Name, o.Asset.EIP712Version, o.ChainID, o.Asset.Address)
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
	latest := chainTime + uint64(o.MaxTimeoutSeconds) + slackSeconds //nolint:gosec // NewOffer bounds the timeout
	switch {
	case s.Asset != o.Asset.Address:
		return invalid(CodeRequirements, "The authorization is of another asset than the offer.")
	case s.To != o.PayTo:
		return invalid(CodeRecipient, "authorization.to must be %s.", o.PayTo)
	case s.Value.Cmp(o.Amount) != 0:
		return invalid(CodeValue, "authorization.value must be exactly %s.", o.Amount)
	case s.ValidBefore < chainTime+lifeSecondsMin:
		return invalid(CodeValidBefore,
			"authorization.validBefore must be at least %d s after the time of the chain, which is %d.", lifeSecondsMin, chainTime)
	case s.ValidAfter >= chainTime:
		return invalid(CodeValidAfter, "The authorization is not valid yet: authorization.validAfter must be before the time of the chain, which is %d.", chainTime)
	case s.ValidBefore > latest:
		return invalid(CodeValidBefore, "authorization.validBefore must not be after %d: the chain's time, maxTimeoutSeconds and %d s.", latest, slackSeconds)
	}
	return nil
}
