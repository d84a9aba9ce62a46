package remote

import "regexp"

// codePending is a settlement that was sent and is not seen on the chain yet. It decides nothing.
const codePending = "settlement_pending"

// A Blame is whom a facilitator's code speaks against. It is no more than a reason to look.
type Blame int

const (
	_           Blame = iota
	BlameNone         // the facilitator, the chain, or our request
	BlamePayer        // funds, nonce, signature or times of the payer
	BlameEither       // it says that the transfer would fail, and not why
	blameEnd
)

// codes are the official ones that decide against a payment by what the payer did, and those that leave it open.
var codes = map[string]Blame{
	"insufficient_funds":                                         BlamePayer,
	"invalid_exact_evm_insufficient_balance":                     BlamePayer,
	"invalid_exact_evm_nonce_already_used":                       BlamePayer,
	"invalid_exact_evm_signature":                                BlamePayer,
	"invalid_exact_evm_payload_signature":                        BlamePayer,
	"invalid_exact_evm_payload_signature_address":                BlamePayer,
	"invalid_exact_evm_payload_authorization_valid_after":        BlamePayer,
	"invalid_exact_evm_payload_authorization_valid_before":       BlamePayer,
	"invalid_exact_evm_payload_authorization_from_address_kyt":   BlamePayer,
	"invalid_exact_evm_payload_undeployed_smart_wallet":          BlamePayer,
	"payment_expired":                                            BlamePayer,
	"duplicate_settlement":                                       BlamePayer,
	"invalid_exact_evm_transaction_simulation_failed":            BlameEither,
	"invalid_exact_evm_transaction_failed":                       BlameEither,
	"invalid_transaction_state":                                  BlameEither,
	"invalid_payload":                                            BlameEither,
	"invalid_payment":                                            BlameEither,
	"invalid_exact_evm_failed_to_execute_transfer":               BlameEither,
	"invalid_exact_evm_verification_failed":                      BlameEither,
	"invalid_exact_evm_payload_authorization_value":              BlameNone,
	"invalid_exact_evm_payload_authorization_value_mismatch":     BlameNone,
	"invalid_exact_evm_payload_recipient_mismatch":               BlameNone,
	"invalid_exact_evm_recipient_mismatch":                       BlameNone,
	"invalid_exact_evm_payload_authorization_to_address_kyt":     BlameNone,
	"invalid_exact_evm_payload_authorization_typed_data_message": BlameNone,
	"invalid_exact_evm_missing_eip712_domain":                    BlameNone,
	"invalid_exact_evm_token_name_mismatch":                      BlameNone,
	"invalid_exact_evm_token_version_mismatch":                   BlameNone,
	"invalid_exact_evm_eip3009_not_supported":                    BlameNone,
	"invalid_exact_evm_transfer_event_mismatch":                  BlameNone,
	"asset_not_deployed_contract":                                BlameNone,
	"invalid_network":                                            BlameNone,
	"invalid_payment_requirements":                               BlameNone,
	"invalid_scheme":                                             BlameNone,
	"unsupported_scheme":                                         BlameNone,
	"unsupported_payload_type":                                   BlameNone,
	"invalid_x402_version":                                       BlameNone,
	"unexpected_verify_error":                                    BlameNone,
	"unexpected_settle_error":                                    BlameNone,
}

// blameOf reads a code. One that is not known may mean anything, so it is worth a look.
func blameOf(code string) Blame {
	if b, known := codes[code]; known {
		return b
	}
	return BlameEither
}

var codeForm = regexp.MustCompile(`^[a-z]+(_[a-z0-9]+){1,12}$`)

const codeBytesMax = 80

// codeOf keeps what looks like a code. Anything else is a text of a stranger.
func codeOf(text string) string {
	if len(text) > codeBytesMax || !codeForm.MatchString(text) {
		return ""
	}
	return text
}
