package payment

import (
	"slices"
	"strings"
)

// v1Chains are the networks that the closed schema of the v1 client knows. One entry with another name makes it throw the whole challenge away.
var v1Chains = map[string]uint64{
	"abstract": 2741, "abstract-testnet": 11124, "avalanche": 43114, "avalanche-fuji": 43113, "base": 8453, "base-sepolia": 84532,
	"educhain": 41923, "iotex": 4689, "peaq": 3338, "polygon": 137, "polygon-amoy": 80002, "sei": 1329, "sei-testnet": 1328,
	"skale-base-sepolia": 324705682, "story": 1514,
}

// v1AmountDigitsMax is the longest amount that the v1 client's schema lets through.
const v1AmountDigitsMax = 18

// v1Nothing is the error of a body that lists nothing, so that a person with a v1 client learns what to do.
const v1Nothing = "Payment required: this resource can be paid with x402 version 2, by the PAYMENT-REQUIRED header, only"

// A Body is what the 402 body says to x402 v1 clients. It is made to be embedded in the problem document of the same answer: the members of the
// two do not meet.
type Body struct {
	X402Version int              `json:"x402Version"`
	ErrorCode   Code             `json:"error"`
	Accepts     []V1Requirements `json:"accepts"`
}

// V1Requirements is one entry of a v1 body. The v1 client demands description and mimeType, and throws at a null outputSchema.
type V1Requirements struct {
	Scheme            string  `json:"scheme"`
	Network           string  `json:"network"`
	MaxAmountRequired string  `json:"maxAmountRequired"`
	Resource          string  `json:"resource"`
	Description       string  `json:"description"`
	MimeType          string  `json:"mimeType"`
	PayTo             string  `json:"payTo"`
	MaxTimeoutSeconds int     `json:"maxTimeoutSeconds"`
	Asset             string  `json:"asset"`
	Extra             V1Extra `json:"extra"`
}

// V1Extra is the token's own EIP-712 domain.
type V1Extra struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Body is the v1 part of the 402 body, with the code of the header as version 1 spells it.
func (c Challenge) Body(code Code) Body {
	if code != Unpaid {
		code = code.In(V1).or(CodeUnexpected)
	} else if len(c.v1) == 0 {
		code = v1Nothing
	}
	return Body{X402Version: 1, ErrorCode: code, Accepts: c.v1}
}

// v1Accepts keeps the offers that v1 can express; none is an empty list.
func v1Accepts(r Resource, offers []Offer) []V1Requirements {
	accepts := make([]V1Requirements, 0, len(offers))
	for _, o := range offers {
		amount := o.Amount.String()
		if known, ok := v1Chains[o.V1Name]; !ok || known != o.ChainID || len(amount) > v1AmountDigitsMax {
			continue
		}
		accepts = append(accepts, V1Requirements{
			Scheme: scheme, Network: o.V1Name, MaxAmountRequired: amount, Resource: r.URL,
			Description: toASCII(r.Description), MimeType: toASCII(r.MimeType),
			PayTo: o.PayTo.Hex(), MaxTimeoutSeconds: o.MaxTimeoutSeconds, Asset: o.Asset.Address.Hex(),
			Extra: V1Extra{Name: o.Asset.EIP712Name, Version: o.Asset.EIP712Version},
		})
	}
	return slices.Clip(accepts)
}

// toASCII replaces what the v1 client's encoder would throw at.
func toASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return r
		}
		return '?'
	}, s)
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 }
