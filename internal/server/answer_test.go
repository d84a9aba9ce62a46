package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/wire"
)

// Whatever a service says, the receipt beside it can be checked.
func TestServiceAnswer_LeavesTheReceiptReadable(t *testing.T) {
	t.Parallel()
	key, err := chain.ParseKey(strings.Repeat("1", 64))
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := payment.NewNotary(key).SignFor(key.Address(), payment.OutcomeReceipt{Version: 1, Network: "eip155:84532", Payer: common.Address{1}.Hex()})
	if err != nil {
		t.Fatal(err)
	}
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	for name, tt := range map[string]struct {
		body string
		raw  bool
	}{
		"an object":                   {`{"error":"so"}`, true},
		"a number":                    {` 7 `, true},
		"text":                        {`so "sorry"`, false},
		"a member twice":              {`{"a":1,"a":2}`, false},
		"a zero":                      {`"\u0000"`, false},
		"half of a pair":              {`["\ud800"]`, false},
		"a receipt of its own":        {`{"receipt":{"signature":"0x"}}`, true},
		"as deep as a document goes":  {nested(wire.DepthMax - 1), true},
		"deeper than a document goes": {nested(wire.DepthMax), false},
		"a list's end too early":      {`1],[2`, false},
	} {
		p := newTestServer().newProblem(call.Upstream5xx, 502)
		p.ServiceAnswer, p.Receipt = serviceAnswer([]byte(tt.body)), receipt
		document, err := json.Marshal(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		read, err := payment.ReadSigned(document)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if who, err := read.Signer(); err != nil || who != key.Address() {
			t.Errorf("%s: signed by %s, %v", name, who, err)
		}
		var shown string
		if text := json.Unmarshal(p.ServiceAnswer, &shown) == nil && shown == tt.body; text == tt.raw {
			t.Errorf("%s: shown as %s", name, p.ServiceAnswer)
		}
	}
	for _, body := range []string{"", "\xff", "so\x00sorry"} {
		if got := serviceAnswer([]byte(body)); got != nil {
			t.Errorf("%q is shown as %s", body, got)
		}
	}
}
