package chain

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

func TestRevert_EachKindHasACodeAndAFault(t *testing.T) {
	t.Parallel()
	tests := map[RevertKind]struct {
		code  string
		fault bool
	}{
		RevertNonceUsed:    {"invalid_exact_evm_nonce_already_used", true},
		RevertExpired:      {"invalid_exact_evm_payload_authorization_valid_before", true},
		RevertNotYetValid:  {"invalid_exact_evm_payload_authorization_valid_after", true},
		RevertInsufficient: {"insufficient_funds", true},
		RevertBlocked:      {"invalid_exact_evm_transaction_simulation_failed", true},
		RevertPaused:       {"invalid_exact_evm_transaction_simulation_failed", false},
		RevertBadSignature: {"invalid_exact_evm_signature", true},
		RevertUnclear:      {"invalid_exact_evm_transaction_simulation_failed", false},
	}
	for _, kind := range RevertKinds() {
		want, ok := tests[kind]
		if !ok {
			t.Errorf("kind %d has no line here", kind)
			continue
		}
		r := &Revert{Kind: kind}
		if r.Code() != want.code || r.PayerFault() != want.fault {
			t.Errorf("kind %d: code %s, payer's fault %v, want %s, %v", kind, r.Code(), r.PayerFault(), want.code, want.fault)
		}
	}
	if (&Revert{}).PayerFault() {
		t.Error("no kind at all is the payer's fault")
	}
}

func TestRevertOr_ReadsWhatTokensSay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want RevertKind
	}{
		"used":             {"FiatTokenV2: authorization is used or canceled", RevertNonceUsed},
		"expired":          {"FiatTokenV2: authorization is expired", RevertExpired},
		"not yet valid":    {"FiatTokenV2: authorization is not yet valid", RevertNotYetValid},
		"balance":          {"ERC20: transfer amount exceeds balance", RevertInsufficient},
		"blacklisted":      {"Blacklistable: account is blacklisted", RevertBlocked},
		"paused":           {"Pausable: paused", RevertPaused},
		"signature":        {"FiatTokenV2: invalid signature", RevertBadSignature},
		"recovery":         {"ECRecover: invalid signature 's' value", RevertBadSignature},
		"something else":   {"ERC20: transfer to the zero address", RevertUnclear},
		"an allowance":     {"ERC20: transfer amount exceeds allowance", RevertUnclear},
		"nothing":          {"", RevertUnclear},
		"written in upper": {"AUTHORIZATION IS EXPIRED", RevertExpired},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for form, err := range map[string]*answerError{
				"as data":           {code: 3, text: "execution reverted", data: errorData(t, tt.text)},
				"as data of -32000": {code: -32000, text: "execution reverted", data: errorData(t, tt.text)},
				"as text":           {code: 3, text: "execution reverted: " + tt.text},
			} {
				var got *Revert
				if !errors.As(revertOr(&Trouble{"eth_call", err}), &got) || got.Kind != tt.want {
					t.Errorf("%s: %v, want kind %d", form, got, tt.want)
				}
			}
		})
	}
}

func TestRevertOr_ReadsCustomErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		data string
		want RevertKind
	}{
		"insufficient balance": {"0xe450d38c" + strings.Repeat("0", 192), RevertInsufficient},
		"paused":               {"0xd93c0665", RevertPaused},
		"an unknown one":       {"0xdeadbeef", RevertUnclear},
		"a panic":              {"0x4e487b71" + strings.Repeat("0", 62) + "11", RevertUnclear},
		"three bytes":          {"0x08c379", RevertUnclear},
		"a truncated text":     {"0x08c379a0" + strings.Repeat("f", 64), RevertUnclear},
	}
	for name, tt := range tests {
		var got *Revert
		if !errors.As(revertOr(&answerError{code: 3, text: "execution reverted", data: tt.data}), &got) || got.Kind != tt.want {
			t.Errorf("%s: %v, want kind %d", name, got, tt.want)
		}
	}
}

// Words are no evidence: a node that is overloaded can say anything.
func TestRevertOr_TroubleIsNoRevert(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"a text that sounds like a revert": &answerError{code: -32000, text: "execution reverted: authorization is expired"},
		"a rate limit":                     &answerError{code: -32005, text: "limit exceeded", data: map[string]any{"see": "a page"}},
		"data that is no hexadecimal":      &answerError{code: -32000, text: "missing trie node", data: "authorization is used"},
		"empty data":                       &answerError{code: -32000, text: "out of gas", data: "0x"},
		"HTTP":                             clean(rpc.HTTPError{StatusCode: 429, Status: "429 Too Many Requests"}),
		"a broken connection":              errors.New("read: connection reset by peer"),
	} {
		var revert *Revert
		if got := revertOr(&Trouble{"eth_call", err}); errors.As(got, &revert) {
			t.Errorf("%s: read as %v", name, revert)
		}
	}
}

func TestRevert_TextIsOneBoundedLine(t *testing.T) {
	t.Parallel()
	hostile := "paused\r\nlevel=error msg=fake\x1b[31m\xff" + strings.Repeat("x", 10_000)
	var got *Revert
	if !errors.As(revertOr(&answerError{code: 3, data: errorData(t, hostile)}), &got) {
		t.Fatal("not read as a revert")
	}
	if len(got.Text) > textMax || strings.ContainsAny(got.Text, "\r\n\x1b") || !utf8.ValidString(got.Text) || got.Kind != RevertPaused {
		t.Errorf("text = %q, kind %d", got.Text, got.Kind)
	}
}

// errorData is Solidity's Error(string).
func errorData(t *testing.T, text string) string {
	t.Helper()
	kind, err := abi.NewType("string", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := abi.Arguments{{Type: kind}}.Pack(text)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("0x08c379a0%s", hex.EncodeToString(packed))
}

func FuzzRevertOr(f *testing.F) {
	f.Add(3, "execution reverted", "0x08c379a0")
	f.Add(-32000, "", "")
	f.Fuzz(func(t *testing.T, code int, text, data string) {
		err := revertOr(&answerError{code: code, text: text, data: data})
		var revert *Revert
		_, bad := hexutil.Decode(data)
		if errors.As(err, &revert) && code != revertCode && bad != nil {
			t.Errorf("code %d, data %q: read as %v without evidence", code, data, revert)
		}
	})
}
