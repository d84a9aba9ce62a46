package desk

import (
	"errors"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/payment"
)

var errOurs = errors.New("ours")

// What is not known is never told as a failure: the seller would ask for a second payment.
func TestVerdictOf_TellsWhatIsKnown(t *testing.T) {
	t.Parallel()
	sent := common.Hash{1}
	tests := map[string]struct {
		s      chain.Settlement
		status int // 0: a yes
		code   payment.Code
	}{
		"settled":                             {chain.Settlement{Status: chain.StatusSettled, Transaction: sent}, 0, ""},
		"the payer has no money":              {chain.Settlement{Status: chain.StatusReleased, Why: "insufficient_funds", PayerFault: true}, http.StatusOK, "insufficient_funds"},
		"the token is paused":                 {chain.Settlement{Status: chain.StatusReleased, Why: string(codeSimulated)}, http.StatusOK, codeSimulated},
		"we have no gas":                      {chain.Settlement{Status: chain.StatusReleased, Why: "unexpected_settle_error", Err: errOurs}, http.StatusServiceUnavailable, payment.CodeSettle},
		"undone on the chain":                 {chain.Settlement{Status: chain.StatusRejected, Why: string(codeFailed), Transaction: sent}, http.StatusOK, codeFailed},
		"not mined yet":                       {chain.Settlement{Status: chain.StatusUnknown, Why: "settlement_pending", Transaction: sent}, http.StatusOK, payment.CodePending},
		"shown before, and the token refuses": {chain.Settlement{Status: chain.StatusUnknown, Why: string(codeSimulated), Transaction: sent}, http.StatusOK, payment.CodePending},
		"the token lies":                      {chain.Settlement{Status: chain.StatusUnknown, Why: string(codeTransfer), Transaction: sent}, http.StatusOK, codeTransfer},
		"we do not know whether it was sent":  {chain.Settlement{Status: chain.StatusUnknown, Why: "unexpected_settle_error", Err: errOurs}, http.StatusServiceUnavailable, payment.CodePending},
		"a settlement that was forgotten":     {chain.Settlement{}, http.StatusServiceUnavailable, payment.CodeSettle},
	}
	for name, tt := range tests {
		err := verdictOf(tt.s)
		if tt.status == 0 {
			if err != nil {
				t.Errorf("%s: %v, want a yes", name, err)
			}
			continue
		}
		no, ok := errors.AsType[*refused](err)
		if !ok || no.status != tt.status || no.code != tt.code || (no.status == http.StatusOK) != (no.wait == 0) {
			t.Errorf("%s: %+v, want %d %s", name, err, tt.status, tt.code)
		}
	}
}

// The closed list of version 1; settlement_pending is not in it and has no word there.
func TestSpell_GivesVersion1ItsOwnWords(t *testing.T) {
	t.Parallel()
	list := map[payment.Code]bool{
		"insufficient_funds": true, "invalid_network": true, "invalid_payload": true, "invalid_payment_requirements": true, "invalid_scheme": true,
		"unsupported_scheme": true, "invalid_x402_version": true, "invalid_transaction_state": true, "unexpected_verify_error": true,
		"unexpected_settle_error": true, "invalid_exact_evm_payload_authorization_valid_after": true,
		"invalid_exact_evm_payload_authorization_valid_before": true, "invalid_exact_evm_payload_authorization_value": true,
		"invalid_exact_evm_payload_signature": true, "invalid_exact_evm_payload_recipient_mismatch": true, "invalid_payment": true,
	}
	for code, word := range v1Words {
		if !list[word] || list[code] {
			t.Errorf("%s is %s in version 1: a word for what it has no word for", code, word)
		}
		if spell(payment.V1, code) != word || spell(payment.V2, code) != code {
			t.Errorf("%s is spelt %s in version 1 and %s in version 2", code, spell(payment.V1, code), spell(payment.V2, code))
		}
	}
	for _, kind := range chain.RevertKinds() {
		revert := chain.Revert{Kind: kind}
		if word := spell(payment.V1, payment.Code(revert.Code())); !list[word] {
			t.Errorf("what the token says is %s in version 1, which has no such word", word)
		}
	}
}
