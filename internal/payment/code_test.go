package payment

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"market/internal/call"
	"market/internal/chain"
)

// words are x402's code of every reason that it has one for, in version 2 and in version 1. They are a part of the API.
var words = map[call.Reason][2]Code{
	call.PaymentRequired:   {"Payment required", "Payment required"},
	call.PaymentMalformed:  {"invalid_payload", "invalid_payload"},
	call.PaymentMismatch:   {"invalid_payment_requirements", "invalid_payment_requirements"},
	call.PaymentInvalid:    {"invalid_payload", "invalid_payload"},
	call.PayerUnfunded:     {"insufficient_funds", "insufficient_funds"},
	call.PaymentReused:     {"duplicate_settlement", "duplicate_settlement"},
	call.InProgress:        {"duplicate_settlement", "duplicate_settlement"},
	call.SettlementPending: {"settlement_pending", "settlement_pending"},
	call.SettleRejected:    {"invalid_transaction_state", "invalid_transaction_state"},
	call.Released:          {"unexpected_settle_error", "unexpected_settle_error"},
}

func TestCodeOf_EveryReasonKeepsItsWord(t *testing.T) {
	t.Parallel()
	for _, r := range call.Reasons() {
		want, official := words[r]
		if !official {
			want = [2]Code{Code("market_" + string(r)), Code("market_" + string(r))}
		}
		code := CodeOf(r)
		if got := [2]Code{code.In(V2), code.In(V1)}; got != want {
			t.Errorf("%s is %q in version 2 and 1, want %q", r, got, want)
		}
		if code != code.or(CodeUnexpected) {
			t.Errorf("%s: %q does not fit a header", r, code)
		}
	}
}

// finer are the codes that a refusal carries beside its reason, in version 2 and in version 1.
var finer = map[Code]Code{
	"invalid_payload":                                        "invalid_payload",
	"invalid_x402_version":                                   "invalid_x402_version",
	"unsupported_payload_type":                               "invalid_payload",
	"invalid_exact_evm_failed_to_parse_signature":            "invalid_exact_evm_payload_signature",
	"unsupported_scheme":                                     "unsupported_scheme",
	"invalid_network":                                        "invalid_network",
	"invalid_payment_requirements":                           "invalid_payment_requirements",
	"invalid_exact_evm_missing_eip712_domain":                "invalid_payment_requirements",
	"invalid_exact_evm_token_name_mismatch":                  "invalid_payment_requirements",
	"invalid_exact_evm_token_version_mismatch":               "invalid_payment_requirements",
	"invalid_exact_evm_signature":                            "invalid_exact_evm_payload_signature",
	"invalid_exact_evm_recipient_mismatch":                   "invalid_exact_evm_payload_recipient_mismatch",
	"invalid_exact_evm_payload_authorization_value_mismatch": "invalid_exact_evm_payload_authorization_value",
	"invalid_exact_evm_payload_authorization_valid_after":    "invalid_exact_evm_payload_authorization_valid_after",
	"invalid_exact_evm_payload_authorization_valid_before":   "invalid_exact_evm_payload_authorization_valid_before",
	"settlement_pending":                                     "settlement_pending",
	"insufficient_funds":                                     "insufficient_funds",
	"invalid_transaction_state":                              "invalid_transaction_state",
	"duplicate_settlement":                                   "duplicate_settlement",
	"unexpected_settle_error":                                "unexpected_settle_error",
	"unexpected_verify_error":                                "unexpected_verify_error",
	"invalid_exact_evm_nonce_already_used":                   "invalid_transaction_state",
	"invalid_exact_evm_transaction_failed":                   "invalid_transaction_state",
	"invalid_exact_evm_transaction_simulation_failed":        "invalid_transaction_state",
	"invalid_exact_evm_transfer_event_mismatch":              "invalid_transaction_state",
	"invalid_exact_evm_insufficient_balance":                 "insufficient_funds",
}

func TestCode_EveryCodeKeepsItsWordInVersion1(t *testing.T) {
	t.Parallel()
	ours := []Code{CodePayload, CodeVersion, CodePayloadKind, CodeSignatureFormat, CodeScheme, CodeNetwork, CodeRequirements, CodeDomainMissing,
		CodeDomainName, CodeDomainVersion, CodeSignature, CodeRecipient, CodeValue, CodeValidAfter, CodeValidBefore, CodePending, CodeFunds,
		CodeRejected, CodeDuplicate, CodeSettle, CodeUnexpected}
	for _, kind := range chain.RevertKinds() {
		ours = append(ours, Code((&chain.Revert{Kind: kind}).Code()))
	}
	for _, code := range slices.Concat(ours, slices.Collect(maps.Keys(finer))) {
		want, pinned := finer[code]
		if !pinned {
			t.Errorf("%s is not pinned", code)
		}
		if got := code.In(V1); got != want || code.In(V2) != code {
			t.Errorf("%s is %s in version 1 and %s in version 2, want %s and itself", code, got, code.In(V2), want)
		}
	}
}

// v1Words is the closed list of x402 1.2.0, as far as it is about EVM chains.
const v1Words = ` insufficient_funds invalid_network invalid_payload invalid_payment_requirements invalid_scheme unsupported_scheme
	invalid_x402_version invalid_transaction_state unexpected_verify_error unexpected_settle_error invalid_payment payment_expired
	invalid_exact_evm_payload_authorization_valid_after invalid_exact_evm_payload_authorization_valid_before
	invalid_exact_evm_payload_authorization_value invalid_exact_evm_payload_signature invalid_exact_evm_payload_recipient_mismatch
	invalid_exact_evm_payload_undeployed_smart_wallet duplicate_settlement `

func TestCode_Version1IsSpokenInItsOwnWords(t *testing.T) {
	t.Parallel()
	known := strings.Fields(v1Words)
	for code := range finer {
		word := code.In(V1)
		// It has no word for what is not decided yet, and one that says failure would be a lie.
		if word != CodePending && !slices.Contains(known, string(word)) {
			t.Errorf("%s is %s in version 1, which has no such word", code, word)
		}
	}
}
