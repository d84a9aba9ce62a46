package desk

import "market/internal/payment"

// Codes beside those of payment: official ones of facilitators, and ours, with a prefix, for what x402 has no word for.
const (
	codeScheme   payment.Code = "invalid_exact_evm_scheme"
	codeNetwork  payment.Code = "invalid_exact_evm_network_mismatch"
	codeBalance  payment.Code = "invalid_exact_evm_insufficient_balance"
	codeTransfer payment.Code = "invalid_exact_evm_transfer_event_mismatch"

	codeUnauthorized payment.Code = "market_unauthorized"
	codeRate         payment.Code = "market_rate_limited"
	codeRecipient    payment.Code = "market_recipient_not_allowed"
)

// spell writes a code as the facilitators of a version do.
func spell(version payment.Version, code payment.Code) payment.Code {
	if version == payment.V2 && code == payment.CodeFunds {
		return codeBalance
	}
	return code.In(version)
}
