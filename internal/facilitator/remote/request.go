package remote

import (
	"bytes"
	"encoding/json"
	"fmt"

	"market/internal/chain"
	"market/internal/payment"
)

// Versions of x402 that a kind can have.
const (
	v1 = 1
	v2 = 2
)

const (
	scheme = "exact"
	// timeoutSeconds is maxTimeoutSeconds of the terms. The authorization has its own validity, so nothing depends on it.
	timeoutSeconds = 120
)

type request struct {
	X402Version  int `json:"x402Version"`
	Payload      any `json:"paymentPayload"`
	Requirements any `json:"paymentRequirements"`
}

type payloadV2 struct {
	X402Version int                    `json:"x402Version"`
	Accepted    requirementsV2         `json:"accepted"`
	Payload     payment.SignedTransfer `json:"payload"`
}

type requirementsV2 struct {
	Scheme            string          `json:"scheme"`
	Network           string          `json:"network"`
	Amount            string          `json:"amount"`
	Asset             string          `json:"asset"`
	PayTo             string          `json:"payTo"`
	MaxTimeoutSeconds int             `json:"maxTimeoutSeconds"`
	Extra             payment.V1Extra `json:"extra"`
}

type payloadV1 struct {
	X402Version int                    `json:"x402Version"`
	Scheme      string                 `json:"scheme"`
	Network     string                 `json:"network"`
	Payload     payment.SignedTransfer `json:"payload"`
}

// requestOf is the body of /verify and /settle. Everything in it is what we have checked or configured ourselves; nothing is an echo of
// what a caller sent. The resource is the whole market: which of its services is paid for is nobody else's business.
func requestOf(version int, n chain.Network, s chain.Signed, resource string) ([]byte, error) {
	asset, known := n.Asset(s.Asset)
	if !known {
		return nil, fmt.Errorf("asset %s is not configured on %s", s.Asset, n.ID)
	}
	token := payment.V1Extra{Name: asset.EIP712Name, Version: asset.EIP712Version}
	signed := payment.TransferOf(s)
	r := request{X402Version: version}
	switch version {
	case v2:
		terms := requirementsV2{Scheme: scheme, Network: n.ID, Amount: s.Value.String(), Asset: s.Asset.Hex(), PayTo: s.To.Hex(),
			MaxTimeoutSeconds: timeoutSeconds, Extra: token}
		r.Payload, r.Requirements = payloadV2{X402Version: v2, Accepted: terms, Payload: signed}, terms
	case v1:
		r.Payload = payloadV1{X402Version: v1, Scheme: scheme, Network: n.V1Name, Payload: signed}
		r.Requirements = payment.V1Requirements{Scheme: scheme, Network: n.V1Name, MaxAmountRequired: s.Value.String(), Resource: resource,
			MimeType: "application/json", PayTo: s.To.Hex(), MaxTimeoutSeconds: timeoutSeconds, Asset: s.Asset.Hex(), Extra: token}
	default:
		return nil, fmt.Errorf("there is no x402 version %d", version)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
