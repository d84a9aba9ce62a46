package payment

import (
	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// Normalize gives the network of a version 1 payment its CAIP-2 id, so that no later step knows two names of one network. A name that is none of
// these networks' stays as it is and equals no id.
func (p Payload) Normalize(networks ...chain.Network) Payload {
	if p.Version != V1 {
		return p
	}
	for _, n := range networks {
		if n.V1Name == p.Network {
			p.Network = n.ID
			break
		}
	}
	return p
}

// In is the payment with the asset that Identify found it to be in; version 2 names it, and then it is the same one.
func (p Payload) In(asset common.Address) Payload {
	p.Asset = asset
	return p
}

// NetworkName is what a version calls a network.
func (v Version) NetworkName(n chain.Network) string {
	if v == V1 {
		return n.V1Name
	}
	return n.ID
}
