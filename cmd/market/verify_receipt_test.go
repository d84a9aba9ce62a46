package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"market/internal/chain"
	"market/internal/payment"
)

const (
	treasuryKey = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
	treasury    = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
)

// signedBy is the JSON of a statement that the treasury signed.
func signedBy(t *testing.T, s payment.Statement) string {
	t.Helper()
	k, err := chain.ParseKey(treasuryKey)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := payment.NewNotary(k).SignFor(k.Address(), s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(signed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	someReceipt = payment.Receipt{Version: 1, Network: "eip155:84532", ResourceURL: "https://market.test/s/echo", Payer: "0xpayer", IssuedAt: 1790000000,
		Transaction: "0xpaid"}
	someOutcome = payment.OutcomeReceipt{Version: 1, Network: "eip155:84532", ResourceURL: "https://market.test/s/echo", Payer: "0xpayer", IssuedAt: 1790000000,
		Transaction: "0xpaid", Call: "c-1", Outcome: "failed", Reason: "upstream_5xx", Amount: "5000", Asset: "0xasset", RefundState: payment.RefundOwed,
		RefundNonce: "0xnonce"}
	someTerms = payment.SignedTerms{Version: 1, ResourceURL: "https://market.test/s/echo", Scheme: "exact", Network: "eip155:84532", Asset: "0xasset",
		PayTo: treasury, Amount: "5000", ValidUntil: 1790000000}
)

func runVerify(stdin string, args ...string) (string, error) {
	cmd := newRootCommand()
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"verify-receipt"}, args...))
	err := cmd.Execute()
	return out.String(), err
}

func TestVerifyReceipt_SaysWhoSignedAndWhat(t *testing.T) {
	t.Parallel()
	void, none := someOutcome, someOutcome
	void.RefundState, void.RefundNonce = payment.RefundVoid, ""
	none.RefundState, none.RefundNonce, none.Transaction = payment.RefundNone, "", ""
	evil := someReceipt
	evil.ResourceURL = "x\x1b[2K\nsigned by  0xsomebody else\u202e"
	evil.IssuedAt = 1 << 63
	otherTerms := someTerms
	otherTerms.PayTo = "0x0000000000000000000000000000000000000001"
	receipt := signedBy(t, someReceipt)
	for name, tt := range map[string]struct {
		document string
		flags    []string
		want     []string // lines in the output
		err      string   // a part of the error; empty for none
	}{
		"a receipt": {receipt, nil, []string{"signed by  " + treasury,
			"says       0xpayer paid for a call of https://market.test/s/echo on eip155:84532, and was served", "at         2026-09-21T14:13:20Z",
			"paid by    transaction 0xpaid", "note       compare the signer with the wallet that was paid, or give that as --signer"}, ""},
		"a receipt of the right signer": {receipt, []string{"--signer", strings.ToLower(treasury)}, []string{"signed by  " + treasury}, ""},
		"an outcome": {signedBy(t, someOutcome), nil, []string{
			"says       the call c-1 of https://market.test/s/echo by 0xpayer on eip155:84532 was not served: failed (upstream_5xx)",
			"refund     5000 base units of 0xasset are owed to 0xpayer",
			"paid back  if authorizationState(" + treasury + ", 0xnonce) of 0xasset on eip155:84532 is true"}, ""},
		"an outcome without a payment":  {signedBy(t, none), nil, []string{"refund     none is owed, because no money moved"}, ""},
		"an outcome of a lost payment":  {signedBy(t, void), nil, []string{"refund     none is owed, because the chain itself took the payment back"}, ""},
		"an outcome in a call's record": {`{"id":"c-1","receipt":` + signedBy(t, someOutcome) + `}`, nil, []string{"signed by  " + treasury}, ""},
		"terms":                         {signedBy(t, someTerms), nil, []string{"says       a call of https://market.test/s/echo costs 5000 base units of 0xasset on eip155:84532, to be paid to " + treasury}, ""},
		"terms of another wallet":       {signedBy(t, otherTerms), nil, nil, "not the wallet that the terms pay to"},
		"words that move the cursor":    {signedBy(t, evil), nil, []string{"says       0xpayer paid for a call of x?[2K?signed by  0xsomebody else? on eip155:84532, and was served", "at         9223372036854775808 seconds after 1970"}, ""},
		"another signer":                {receipt, []string{"--signer", "0x0000000000000000000000000000000000000001"}, nil, "signed by " + treasury + ", not by"},
		"a signer that is no address":   {receipt, []string{"--signer", "alice"}, nil, "no address"},
		"a receipt that was changed":    {strings.Replace(receipt, "0xpayer", "0xother", 1), []string{"--signer", treasury}, nil, "not by " + treasury},
		"a signature that is none":      {strings.Replace(receipt, `"signature":"0x`, `"signature":"0xff`, 1), nil, nil, "does not hold"},
		"a document without one":        {`{}`, nil, nil, "no signed receipt"},
		"something else":                {`hello`, nil, nil, "not a receipt"},
		"nothing":                       {``, nil, nil, "not a receipt"},
	} {
		out, err := runVerify(tt.document, append([]string{"-"}, tt.flags...)...)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error = %v, want %q in it", name, err, tt.err)
		}
		if code := exitCode(err); code != map[bool]int{true: 0, false: exitFailure}[err == nil] {
			t.Errorf("%s: exit status %d", name, code)
		}
		for _, line := range tt.want {
			if !strings.Contains("\n"+out, "\n"+line+"\n") {
				t.Errorf("%s: no line %q in\n%s", name, line, out)
			}
		}
	}
}

func TestVerifyReceipt_ReadsAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "receipt.json")
	if err := os.WriteFile(file, []byte(signedBy(t, someReceipt)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runVerify("", file, "--signer", treasury); err != nil || !strings.HasPrefix(out, "signed by  "+treasury) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := runVerify("", file+".gone"); err == nil {
		t.Error("a file that is not there was read")
	}
}
