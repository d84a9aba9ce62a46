package payment

import (
	"errors"
	"regexp"

	"market/internal/call"
	"market/internal/refusal"
)

// A Code is x402's word for what is wrong, in the spelling of the official clients and facilitators: `error` of a challenge and
// `errorReason` of a settlement. It travels as the cause of a refusal where it is finer than the refusal's reason.
type Code string

func (c Code) Error() string { return string(c) }

// Unpaid is the `error` of a challenge that answers a request without a payment; the official servers say the same.
const Unpaid Code = "Payment required"

// Official codes that this package finds the cause of.
const (
	CodePayload         Code = "invalid_payload"
	CodeVersion         Code = "invalid_x402_version"
	CodePayloadKind     Code = "unsupported_payload_type"
	CodeSignatureFormat Code = "invalid_exact_evm_failed_to_parse_signature"
	CodeScheme          Code = "unsupported_scheme"
	CodeNetwork         Code = "invalid_network"
	CodeRequirements    Code = "invalid_payment_requirements"
	CodeDomainMissing   Code = "invalid_exact_evm_missing_eip712_domain"
	CodeDomainName      Code = "invalid_exact_evm_token_name_mismatch"
	CodeDomainVersion   Code = "invalid_exact_evm_token_version_mismatch"
	CodeSignature       Code = "invalid_exact_evm_signature"
	CodeRecipient       Code = "invalid_exact_evm_recipient_mismatch"
	CodeValue           Code = "invalid_exact_evm_payload_authorization_value_mismatch"
	CodeValidAfter      Code = "invalid_exact_evm_payload_authorization_valid_after"
	CodeValidBefore     Code = "invalid_exact_evm_payload_authorization_valid_before"
	CodePending         Code = "settlement_pending"
	CodeFunds           Code = "insufficient_funds"
	CodeRejected        Code = "invalid_transaction_state"
	CodeDuplicate       Code = "duplicate_settlement"
	CodeSettle          Code = "unexpected_settle_error"
	CodeUnexpected      Code = "unexpected_verify_error"
	CodeExtensionEcho   Code = "extension_echo_mismatch"
)

// official is the one table from our reasons to x402's codes. A reason that x402 has no word for keeps its own, with a prefix.
var official = map[call.Reason]Code{
	call.PaymentRequired:   Unpaid,
	call.PaymentMalformed:  CodePayload,
	call.PaymentMismatch:   CodeRequirements,
	call.PaymentInvalid:    CodePayload,
	call.PayerUnfunded:     CodeFunds,
	call.PaymentReused:     CodeDuplicate,
	call.InProgress:        CodeDuplicate,
	call.SettlementPending: CodePending,
	call.SettleRejected:    CodeRejected,
	call.Released:          CodeSettle,
}

// CodeOf is how x402 spells a reason.
func CodeOf(r call.Reason) Code {
	if code, ok := official[r]; ok {
		return code
	}
	return Code("market_" + string(r))
}

// CodeOfError is how x402 spells a refusal: the code it carries as its cause, else that of its reason. Of an error that is no refusal it
// tells nothing.
func CodeOfError(err error) Code {
	if code, ok := errors.AsType[Code](err); ok {
		return code.or(CodeUnexpected)
	}
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		return CodeOf(no.Reason)
	}
	return CodeUnexpected
}

// inV1 has the words of version 1 for codes that its closed list does not know. What it has no word for at all stays as it is: v1 clients pass a
// code on and do not read it.
var inV1 = map[Code]Code{
	CodePayloadKind:     CodePayload,
	CodeSignatureFormat: "invalid_exact_evm_payload_signature",
	CodeSignature:       "invalid_exact_evm_payload_signature",
	CodeRecipient:       "invalid_exact_evm_payload_recipient_mismatch",
	CodeValue:           "invalid_exact_evm_payload_authorization_value",
	CodeDomainMissing:   CodeRequirements,
	CodeDomainName:      CodeRequirements,
	CodeDomainVersion:   CodeRequirements,

	// What a chain or a facilitator said.
	"invalid_exact_evm_nonce_already_used":            CodeRejected,
	"invalid_exact_evm_transaction_simulation_failed": CodeRejected,
	"invalid_exact_evm_transaction_failed":            CodeRejected,
	"invalid_exact_evm_transfer_event_mismatch":       CodeRejected,
	"invalid_exact_evm_insufficient_balance":          CodeFunds,
}

// In is how a version of x402 spells a code.
func (c Code) In(v Version) Code {
	if word, ok := inV1[c]; ok && v == V1 {
		return word
	}
	return c
}

// codeForm keeps whatever a facilitator may one day hand us from growing the header or breaking out of it.
var codeForm = regexp.MustCompile(`^[A-Za-z0-9_ .:-]{1,96}$`)

// codeBytesMax is the longest code that codeForm lets through.
const codeBytesMax = 96

func (c Code) or(fallback Code) Code {
	if codeForm.MatchString(string(c)) {
		return c
	}
	return fallback
}

func malformed(code Code, format string, args ...any) error {
	return refusal.New(call.PaymentMalformed, format, args...).WithCause(code)
}

func mismatch(code Code, format string, args ...any) error {
	return refusal.New(call.PaymentMismatch, format, args...).WithCause(code)
}

func invalid(code Code, format string, args ...any) error {
	return refusal.New(call.PaymentInvalid, format, args...).WithCause(code)
}
