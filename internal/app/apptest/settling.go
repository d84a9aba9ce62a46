package apptest

import (
	"context"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/facilitator"
	"market/internal/money"
)

// A Settling is a request to settle as somebody else's facilitator sees it.
type Settling struct {
	T      *testing.T
	W      http.ResponseWriter
	R      *http.Request
	Signed chain.Signed
	Engine *facilitator.Engine
	Late   *sync.WaitGroup // what is done behind the answer, before the test ends
}

// Say answers in the form of x402.
func (s Settling) Say(success bool, reason string, transaction common.Hash) {
	out := map[string]any{"success": success, "network": devnet.NetworkID, "payer": s.Signed.From.Hex(), "transaction": ""}
	if transaction != (common.Hash{}) {
		out["transaction"] = transaction.Hex()
	}
	if reason != "" {
		out["errorReason"] = reason
	}
	_ = json.NewEncoder(s.W).Encode(out)
}

// Settles puts it on the chain, and tells the truth.
func Settles(s Settling) {
	got := s.Engine.Settle(s.R.Context(), s.Signed)
	s.Say(got.Status == chain.StatusSettled, got.Why, got.Transaction)
}

// Behind puts it on the chain when the request is answered.
func (s Settling) Behind() {
	s.Late.Go(func() { s.Engine.Settle(context.WithoutCancel(s.R.Context()), s.Signed) })
}

// Replies answers so, and does nothing.
func Replies(status int, text string) func(Settling) {
	return func(s Settling) {
		s.W.WriteHeader(status)
		_, _ = io.WriteString(s.W, text)
	}
}

// Declines says no, for a reason of x402.
func Declines(reason string) func(Settling) {
	return func(s Settling) { s.Say(false, reason, common.Hash{}) }
}

// ReadSigned reads the authorization of a v2 request.
func ReadSigned(t testing.TB, body io.Reader) chain.Signed {
	t.Helper()
	var in struct {
		Payload struct {
			Payload struct {
				Signature     hexutil.Bytes
				Authorization struct {
					From, To                       common.Address
					Value, ValidAfter, ValidBefore string
					Nonce                          common.Hash
				}
			}
		} `json:"paymentPayload"`
		Requirements struct {
			Asset, PayTo common.Address
			Amount       string
		} `json:"paymentRequirements"`
	}
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		t.Errorf("decode request: %v", err)
	}
	a := in.Payload.Payload.Authorization
	if in.Requirements.PayTo != a.To || in.Requirements.Amount != a.Value {
		t.Errorf("terms %+v for %+v", in.Requirements, a)
	}
	number := func(text string) *big.Int {
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			t.Errorf("number %q", text)
			return new(big.Int)
		}
		return n
	}
	signature, err := chain.ParseSignature(in.Payload.Payload.Signature)
	if err != nil {
		t.Error(err)
	}
	return chain.Signed{Asset: in.Requirements.Asset, Signature: signature, Authorization: chain.Authorization{From: a.From, To: a.To,
		Value: money.FromUnits(number(a.Value).Uint64()), ValidAfter: number(a.ValidAfter).Uint64(), ValidBefore: number(a.ValidBefore).Uint64(), Nonce: a.Nonce}}
}
