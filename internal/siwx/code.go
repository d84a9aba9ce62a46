package siwx

import (
	"fmt"

	"market/internal/call"
	"market/internal/refusal"
)

// A Code says what is wrong with a sign-in, in the spelling of the official servers. It is the cause of a refusal for unauthorized, and
// stands at the end of its text.
type Code string

func (c Code) Error() string { return string(c) }

// The official codes, and two of our own for a header that is no sign-in at all.
const (
	CodeHeader             Code = "invalid_siwx_header"  // ours
	CodeMessage            Code = "invalid_siwx_message" // ours
	CodeDomain             Code = "invalid_siwx_domain_mismatch"
	CodeURI                Code = "invalid_siwx_uri_mismatch"
	CodeIssuedAt           Code = "invalid_siwx_issued_at"
	CodeTooOld             Code = "invalid_siwx_issued_at_too_old"
	CodeInFuture           Code = "invalid_siwx_issued_at_in_future"
	CodeExpirationTime     Code = "invalid_siwx_expiration_time"
	CodeExpired            Code = "invalid_siwx_expired"
	CodeNotBefore          Code = "invalid_siwx_not_before"
	CodeNotYetValid        Code = "invalid_siwx_not_yet_valid"
	CodeNonce              Code = "invalid_siwx_nonce"
	CodeChainID            Code = "invalid_siwx_chain_id"
	CodeUnsupportedChain   Code = "invalid_siwx_unsupported_chain"
	CodeMalformedSignature Code = "invalid_siwx_malformed_signature"
	CodeSignature          Code = "invalid_siwx_signature"
)

// refuse words a refusal. It never repeats what was sent.
func refuse(code Code, format string, args ...any) error {
	return refusal.New(call.Unauthorized, "%s: %s (%s)", Header, fmt.Sprintf(format, args...), code).WithCause(code)
}

// Used is the refusal of a sign-in whose nonce was used before; see Store.UseOnce.
func Used() error {
	return refuse(CodeNonce, "its nonce was used already; sign in again with a fresh one")
}
