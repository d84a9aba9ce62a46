package payment

import (
	"encoding/json"
	"fmt"

	"market/internal/wire"
)

// A SettleResponse says in PAYMENT-RESPONSE what became of a settlement. Transaction is the empty string where nothing was broadcast; with
// Success false and a transaction the outcome is still open.
type SettleResponse struct {
	Success     bool   `json:"success"`
	ErrorReason Code   `json:"errorReason,omitempty"`
	Transaction string `json:"transaction"`
	Network     string `json:"network"` // CAIP-2
	Payer       string `json:"payer,omitempty"`
	// Extensions is an object by extension; a client that knows none of them ignores it.
	Extensions json.RawMessage `json:"extensions,omitempty"`
}

// WithReceipt returns the response with a signed receipt in it, where x402 clients look for one; nil adds nothing.
func (r SettleResponse) WithReceipt(s *Signed) SettleResponse {
	if s != nil {
		r.Extensions = encodeJSON(map[string]any{receiptKey: map[string]any{"info": map[string]any{"receipt": s}}})
	}
	return r
}

// EncodeResponse returns the value of PAYMENT-RESPONSE.
func EncodeResponse(r SettleResponse) string {
	if r.ErrorReason != "" {
		r.ErrorReason = r.ErrorReason.or(CodeSettle)
	}
	return wire.EncodeBase64(encodeJSON(r))
}

// DecodeResponse reads PAYMENT-RESPONSE for a client. Members it does not know are ignored.
func DecodeResponse(header string) (SettleResponse, error) {
	root, err := wire.DecodeObject(header, headerBytesReadMax)
	if err != nil {
		return SettleResponse{}, fmt.Errorf("decode %s: %w", HeaderResponse, err)
	}
	var r SettleResponse
	if err := json.Unmarshal(root.Raw, &r); err != nil {
		return SettleResponse{}, fmt.Errorf("decode %s: %w", HeaderResponse, err)
	}
	return r, nil
}
