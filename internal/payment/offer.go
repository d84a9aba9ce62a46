package payment

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/money"
)

// Scheme and flow are all that we offer: an exact amount, settled before the work is done.
const (
	scheme      = "exact"
	paymentFlow = "upfront"
)

// timeoutSecondsMax bounds how long one call may stay open.
const timeoutSecondsMax = 3600

// An Offer is our own terms for one way to pay for an endpoint: an entry of the challenge while its price holds, and what a payment is
// compared with for as long as that price stays acceptable. Only NewOffer makes one that a payment can answer.
type Offer struct {
	Network           string // CAIP-2
	ChainID           uint64
	V1Name            string // empty where x402 v1 knows no name
	Asset             chain.Asset
	Amount            money.Amount
	PayTo             common.Address
	MaxTimeoutSeconds int
	PriceRevision     int64

	domain chain.Domain
}

// NewOffer checks the terms and computes the asset's domain once, so that offers are worth keeping.
func NewOffer(n chain.Network, asset chain.Asset, amount money.Amount, payTo common.Address, maxTimeoutSeconds int, priceRevision int64) (Offer, error) {
	switch {
	case !evmForm.MatchString(n.ID):
		return Offer{}, fmt.Errorf("offer: network %q is not eip155:<chain id>", n.ID)
	case n.ID != fmt.Sprintf("eip155:%d", n.ChainID):
		return Offer{}, fmt.Errorf("offer: network %s with chain id %d", n.ID, n.ChainID)
	case asset.Address == common.Address{} || asset.EIP712Name == "" || asset.EIP712Version == "":
		return Offer{}, errors.New("offer: asset without address, name or version")
	case amount.IsZero():
		return Offer{}, errors.New("offer: amount is zero")
	case payTo == common.Address{}:
		return Offer{}, errors.New("offer: nobody to pay to")
	case maxTimeoutSeconds < 1 || maxTimeoutSeconds > timeoutSecondsMax:
		return Offer{}, fmt.Errorf("offer: timeout of %d s is not within 1 to %d", maxTimeoutSeconds, timeoutSecondsMax)
	}
	return Offer{
		Network: n.ID, ChainID: n.ChainID, V1Name: n.V1Name, Asset: asset, Amount: amount, PayTo: payTo,
		MaxTimeoutSeconds: maxTimeoutSeconds, PriceRevision: priceRevision,
		domain: chain.NewDomain(asset, n.ChainID),
	}, nil
}
