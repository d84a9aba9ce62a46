package payment

import (
	"fmt"

	"market/internal/wire"
)

// A SettleResponse says in PAYMENT-RESPONSE, or in version 1 in X-PAYMENT-RESPONSE, what became of a settlement. Transaction is the empty string where nothing was broadcast; with
// Success false and a transaction the outcome is still open.
type SettleResponse struct {
	Version     Version `json:"-"` // of the payment that it answers; it decides header and spelling
	Success     bool    `json:"success"`
	ErrorReason Code    `json:"errorReason,omitempty"`
	Transaction string  `json:"transaction"`
	Network     string  `json:"network"` // as Version names it
	Payer       string  `json:"payer,omitempty"`
}

// Header is the name of the header that a client of the version reads.
func (r SettleResponse) Header() string {
	if r.Version == V1 {
		return HeaderV1Response
	}
	return HeaderResponse
}

// EncodeResponse returns the value of that header.
func EncodeResponse(r SettleResponse) string {
	if r.ErrorReason != "" {
		r.ErrorReason = r.ErrorReason.In(r.Version).or(CodeSettle)
	}
	return wire.EncodeBase64(encodeJSON(r))
}

// DecodeResponse reads PAYMENT-RESPONSE for a client. Members that it does not know are ignored, and one that is not there is empty; names are
// compared letter by letter, as everywhere.
func DecodeResponse(header string) (SettleResponse, error) {
	root, err := wire.DecodeObject(header, headerBytesReadMax)
	if err != nil {
		return SettleResponse{}, fmt.Errorf("decode %s: %w", HeaderResponse, err)
	}
	success := root.Members["success"]
	if success.Kind != wire.Bool {
		return SettleResponse{}, fmt.Errorf("decode %s: success is not true or false", HeaderResponse)
	}
	r := SettleResponse{Version: V2, Success: success.Text == "true"}
	var reason string
	for name, to := range map[string]*string{"errorReason": &reason, "transaction": &r.Transaction, "network": &r.Network, "payer": &r.Payer} {
		if !root.Given(name) {
			continue
		}
		if *to, err = (object{"", root}).text(name); err != nil {
			return SettleResponse{}, fmt.Errorf("decode %s: %s is not a string", HeaderResponse, name)
		}
	}
	r.ErrorReason = Code(reason)
	return r, nil
}
