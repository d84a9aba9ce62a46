package payment

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A SettleResponse says in PAYMENT-RESPONSE what became of a settlement. Transaction is the empty string where nothing was broadcast; with
// Success false and a transaction the outcome is still open.
type SettleResponse struct {
	Success     bool   `json:"success"`
	ErrorReason Code   `json:"errorReason,omitempty"`
	Transaction string `json:"transaction"`
	Network     string `json:"network"` // CAIP-2
	Payer       string `json:"payer,omitempty"`
}

// EncodeResponse returns the value of PAYMENT-RESPONSE.
func EncodeResponse(r SettleResponse) string {
	if r.ErrorReason != "" {
		r.ErrorReason = r.ErrorReason.or(CodeSettle)
	}
	return encodeBase64(encodeJSON(r))
}

// errHeader is a header of a server that a client can not read.
var errHeader = errors.New("not base64 of a JSON object")

// DecodeResponse reads PAYMENT-RESPONSE for a client. Members it does not know are ignored.
func DecodeResponse(header string) (SettleResponse, error) {
	root, err := decodeServerHeader(header)
	if err != nil {
		return SettleResponse{}, fmt.Errorf("decode %s: %w", HeaderResponse, err)
	}
	var r SettleResponse
	if err := json.Unmarshal(root.raw, &r); err != nil {
		return SettleResponse{}, fmt.Errorf("decode %s: %w", HeaderResponse, err)
	}
	return r, nil
}

func decodeServerHeader(header string) (value, error) {
	if len(header) > headerBytesReadMax {
		return value{}, fmt.Errorf("longer than %d bytes", headerBytesReadMax)
	}
	data, ok := decodeBase64(header)
	if !ok {
		return value{}, errHeader
	}
	root, err := parseJSON(data)
	if err != nil {
		return value{}, err
	}
	if root.kind != kindObject {
		return value{}, errHeader
	}
	return root, nil
}
