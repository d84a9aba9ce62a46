package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
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
	X402Version int            `json:"x402Version"`
	Accepted    requirementsV2 `json:"accepted"`
	Payload     transfer       `json:"payload"`
}

type requirementsV2 struct {
	Scheme            string `json:"scheme"`
	Network           string `json:"network"`
	Amount            string `json:"amount"`
	Asset             string `json:"asset"`
	PayTo             string `json:"payTo"`
	MaxTimeoutSeconds int    `json:"maxTimeoutSeconds"`
	Extra             domain `json:"extra"`
}

type payloadV1 struct {
	X402Version int      `json:"x402Version"`
	Scheme      string   `json:"scheme"`
	Network     string   `json:"network"`
	Payload     transfer `json:"payload"`
}

// requirementsV1 has no outputSchema: stock software refuses null, and we have none to tell.
type requirementsV1 struct {
	Scheme            string `json:"scheme"`
	Network           string `json:"network"`
	MaxAmountRequired string `json:"maxAmountRequired"`
	Resource          string `json:"resource"`
	Description       string `json:"description"`
	MimeType          string `json:"mimeType"`
	PayTo             string `json:"payTo"`
	MaxTimeoutSeconds int    `json:"maxTimeoutSeconds"`
	Asset             string `json:"asset"`
	Extra             domain `json:"extra"`
}

// domain is the token's own EIP-712 domain.
type domain struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type transfer struct {
	Signature     string        `json:"signature"`
	Authorization authorization `json:"authorization"`
}

type authorization struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Value       string `json:"value"`
	ValidAfter  string `json:"validAfter"`
	ValidBefore string `json:"validBefore"`
	Nonce       string `json:"nonce"`
}

// requestOf is the body of /verify and /settle. Everything in it is what we have checked or configured ourselves; nothing is an echo of
// what a caller sent. The resource is the whole market: which of its services is paid for is nobody else's business.
func requestOf(version int, n chain.Network, s chain.Signed, resource string) ([]byte, error) {
	asset, known := n.Asset(s.Asset)
	if !known {
		return nil, fmt.Errorf("asset %s is not configured on %s", s.Asset, n.ID)
	}
	token := domain{asset.EIP712Name, asset.EIP712Version}
	signed := transfer{
		Signature: hexutil.Encode(s.Signature.Bytes()),
		Authorization: authorization{
			From: s.From.Hex(), To: s.To.Hex(), Value: s.Value.String(), Nonce: s.Nonce.Hex(),
			ValidAfter: strconv.FormatUint(s.ValidAfter, 10), ValidBefore: strconv.FormatUint(s.ValidBefore, 10),
		},
	}
	r := request{X402Version: version}
	switch version {
	case v2:
		terms := requirementsV2{Scheme: scheme, Network: n.ID, Amount: s.Value.String(), Asset: s.Asset.Hex(), PayTo: s.To.Hex(),
			MaxTimeoutSeconds: timeoutSeconds, Extra: token}
		r.Payload, r.Requirements = payloadV2{X402Version: v2, Accepted: terms, Payload: signed}, terms
	case v1:
		r.Payload = payloadV1{X402Version: v1, Scheme: scheme, Network: n.V1Name, Payload: signed}
		r.Requirements = requirementsV1{Scheme: scheme, Network: n.V1Name, MaxAmountRequired: s.Value.String(), Resource: resource,
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
