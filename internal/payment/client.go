package payment

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
	"market/internal/wire"
)

// Required is a challenge as a client reads it.
type Required struct {
	Error       string
	Resource    json.RawMessage // to be echoed; nil where there is none
	URL         string
	Description string
	Accepts     []Accepted // the entries that this package can read, in the server's order
	Unreadable  int        // how many others there are: other chains, schemes with members of their own

	identifier json.RawMessage // how the server declares payment-identifier, to be echoed; nil where it does not
}

// DecodeChallenge reads PAYMENT-REQUIRED for a client. It does not mind members and entries that it does not know.
func DecodeChallenge(header string) (Required, error) {
	root, err := wire.DecodeObject(header, headerBytesReadMax)
	if err != nil {
		return Required{}, fmt.Errorf("decode %s: %w", HeaderRequired, err)
	}
	if version, err := readVersion(object{"", root}); err != nil || version != V2 {
		return Required{}, fmt.Errorf("decode %s: not x402 version 2", HeaderRequired)
	}
	r := Required{Error: root.Members["error"].Text}
	if resource := root.Members["resource"]; resource.Kind == wire.Object {
		r.Resource = resource.Raw
		r.URL, r.Description = resource.Members["url"].Text, resource.Members["description"].Text
	}
	r.identifier = declaredIdentifier(root)
	accepts := root.Members["accepts"]
	if accepts.Kind != wire.Array {
		return Required{}, fmt.Errorf("decode %s: accepts is not an array", HeaderRequired)
	}
	for _, item := range accepts.Items {
		a, err := readAccepted(object{"", item})
		if err != nil {
			r.Unreadable++
			continue
		}
		r.Accepts = append(r.Accepts, a)
	}
	return r, nil
}

type payload struct {
	X402Version int              `json:"x402Version"`
	Payload     SignedTransfer   `json:"payload"`
	Extensions  json.RawMessage  `json:"extensions,omitempty"`
	Resource    *json.RawMessage `json:"resource,omitempty"`
	Accepted    json.RawMessage  `json:"accepted"`
}

// A SignedTransfer is a signed authorization as it stands in a payload of either version.
type SignedTransfer struct {
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

// TransferOf writes a signed authorization down.
func TransferOf(s chain.Signed) SignedTransfer {
	return SignedTransfer{
		Signature: hexutil.Encode(s.Signature.Bytes()),
		Authorization: authorization{
			From: s.From.Hex(), To: s.To.Hex(), Value: s.Value.String(), Nonce: s.Nonce.Hex(),
			ValidAfter: strconv.FormatUint(s.ValidAfter, 10), ValidBefore: strconv.FormatUint(s.ValidBefore, 10),
		},
	}
}

// EncodePayload returns the value of PAYMENT-SIGNATURE for an entry of a challenge, echoed byte for byte, and the authorization that pays it.
// Resource is the challenge's, nil for none.
func EncodePayload(accepted Accepted, resource json.RawMessage, s chain.Signed) (string, error) {
	return encodePayload(accepted, resource, nil, s)
}

func encodePayload(accepted Accepted, resource, extensions json.RawMessage, s chain.Signed) (string, error) {
	if len(accepted.Raw) == 0 {
		return "", errors.New("encode payment: the entry was not read from a challenge")
	}
	p := payload{
		X402Version: 2,
		Extensions:  extensions,
		Accepted:    accepted.Raw,
		Payload:     TransferOf(s),
	}
	if len(resource) > 0 {
		p.Resource = &resource
	}
	text := wire.EncodeBase64(encodeJSON(p))
	if len(text) > headerBytesReadMax {
		return "", fmt.Errorf("encode payment: longer than %d bytes", headerBytesReadMax)
	}
	return text, nil
}
