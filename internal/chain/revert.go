package chain

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// A RevertKind is why an asset refused an authorization.
type RevertKind int

const (
	_                  RevertKind = iota
	RevertNonceUsed               // used or cancelled
	RevertExpired                 // block time is validBefore or later
	RevertNotYetValid             // block time is validAfter or earlier
	RevertInsufficient            // the payer's balance is too small
	RevertBlocked                 // one of the two addresses is on the issuer's blocklist
	RevertPaused                  // the whole token is stopped
	RevertBadSignature            // the token does not take the signature for this payer
	RevertUnclear                 // it said something else, or nothing
	revertKindEnd
)

// RevertKinds returns every kind.
func RevertKinds() []RevertKind {
	var all []RevertKind
	for k := RevertNonceUsed; k < revertKindEnd; k++ {
		all = append(all, k)
	}
	return all
}

// A Revert is an asset's refusal, as the contract gave it. It is evidence about the authorization, unlike Trouble.
type Revert struct {
	Kind RevertKind
	Text string // one printable line
}

func (r *Revert) Error() string { return "the asset refuses the authorization: " + r.Text }

// Code is x402's official spelling.
func (r *Revert) Code() string {
	switch r.Kind {
	case RevertNonceUsed:
		return "invalid_exact_evm_nonce_already_used"
	case RevertExpired:
		return "invalid_exact_evm_payload_authorization_valid_before"
	case RevertNotYetValid:
		return "invalid_exact_evm_payload_authorization_valid_after"
	case RevertInsufficient:
		return "insufficient_funds"
	case RevertBadSignature:
		return "invalid_exact_evm_signature"
	case RevertBlocked, RevertPaused, RevertUnclear:
	}
	return "invalid_exact_evm_transaction_simulation_failed"
}

// PayerFault says whether the payer, as opposed to the rail, is why the authorization cannot pay. A blocklisted recipient reads like a
// blocklisted payer here; who knows the addresses asks the token which of them it is.
func (r *Revert) PayerFault() bool {
	switch r.Kind {
	case RevertNonceUsed, RevertExpired, RevertNotYetValid, RevertInsufficient, RevertBlocked, RevertBadSignature:
		return true
	case RevertPaused, RevertUnclear:
		return false
	}
	return false
}

// revertTexts classifies by what FiatToken and its relatives write. Contracts give no other evidence; a text that is not here is
// RevertUnclear and nobody's fault. The first line that is found in the text wins.
var revertTexts = []struct {
	part string // lower case
	kind RevertKind
}{
	{"authorization is used", RevertNonceUsed},
	{"authorization is expired", RevertExpired},
	{"authorization is not yet valid", RevertNotYetValid},
	{"transfer amount exceeds balance", RevertInsufficient},
	{"blacklisted", RevertBlocked},
	{"blocklisted", RevertBlocked},
	{"paused", RevertPaused},
	{"invalid signature", RevertBadSignature},
}

// revertErrors are custom errors of OpenZeppelin's contracts, by selector.
var revertErrors = map[[4]byte]Revert{
	selector("ERC20InsufficientBalance(address,uint256,uint256)"): {RevertInsufficient, "ERC20InsufficientBalance"},
	selector("EnforcedPause()"):                                   {RevertPaused, "EnforcedPause"},
	selector("ECDSAInvalidSignature()"):                           {RevertBadSignature, "ECDSAInvalidSignature"},
}

func selector(signature string) [4]byte { return [4]byte(crypto.Keccak256([]byte(signature))[:4]) }

// classify reads the bytes that a contract reverted with; text is what the node says beside them.
func classify(data []byte, text string) *Revert {
	if len(data) >= 4 {
		if known, ok := revertErrors[[4]byte(data[:4])]; ok {
			return &known
		}
		if reason, err := abi.UnpackRevert(data); err == nil {
			text = reason
		}
	}
	text = line(text)
	lower := strings.ToLower(text)
	for _, t := range revertTexts {
		if strings.Contains(lower, t.part) {
			return &Revert{t.kind, text}
		}
	}
	return &Revert{RevertUnclear, text}
}

const revertCode = 3 // of JSON-RPC: the execution reverted

// revertOr returns the *Revert that an error of eth_call stands for, or the error as it is. Evidence is the code, or revert data
// beside the error; the node's wording is not.
func revertOr(err error) error {
	var answered *answerError
	if !errors.As(err, &answered) {
		return err
	}
	text, _ := answered.data.(string)
	data, bad := hexutil.Decode(text)
	switch {
	case bad == nil && len(data) > 0:
		return classify(data, "0x"+hex.EncodeToString(data[:min(len(data), textMax/4)]))
	case answered.code == revertCode:
		return classify(nil, answered.text)
	}
	return err
}
