package desk

import "market/internal/payment"

// Codes beside those of payment: official ones of facilitators, and ours, with a prefix, for what x402 has no word for.
const (
	codeScheme    payment.Code = "invalid_exact_evm_scheme"
	codeNetwork   payment.Code = "invalid_exact_evm_network_mismatch"
	codeBalance   payment.Code = "invalid_exact_evm_insufficient_balance"
	codeNonceUsed payment.Code = "invalid_exact_evm_nonce_already_used"
	codeSimulated payment.Code = "invalid_exact_evm_transaction_simulation_failed"
	codeFailed    payment.Code = "invalid_exact_evm_transaction_failed"
	codeTransfer  payment.Code = "invalid_exact_evm_transfer_event_mismatch"

	codeUnauthorized payment.Code = "market_unauthorized"
	codeRate         payment.Code = "market_rate_limited"
	codeRecipient    payment.Code = "market_recipient_not_allowed"
)

// v1Words are what version 1 calls the same: its clients know a closed list. What is not here has one spelling in both; settlement_pending
// is younger than version 1, and no word of its own would say that the money may have moved.
var v1Words = map[payment.Code]payment.Code{
	codeScheme:                  "unsupported_scheme",
	codeNetwork:                 payment.CodeNetwork,
	payment.CodeDomainMissing:   payment.CodeRequirements,
	payment.CodeDomainName:      payment.CodeRequirements,
	payment.CodeDomainVersion:   payment.CodeRequirements,
	payment.CodePayloadKind:     payment.CodePayload,
	payment.CodeSignatureFormat: "invalid_exact_evm_payload_signature",
	payment.CodeSignature:       "invalid_exact_evm_payload_signature",
	payment.CodeRecipient:       "invalid_exact_evm_payload_recipient_mismatch",
	payment.CodeValue:           "invalid_exact_evm_payload_authorization_value",
	codeNonceUsed:               payment.CodeRejected,
	codeSimulated:               payment.CodeRejected,
	codeFailed:                  payment.CodeRejected,
	codeTransfer:                payment.CodeRejected,
}

// spell writes a code as the facilitators of a version do.
func spell(version payment.Version, code payment.Code) payment.Code {
	if version != payment.V1 {
		if code == payment.CodeFunds {
			return codeBalance
		}
		return code
	}
	if word, ok := v1Words[code]; ok {
		return word
	}
	return code
}
