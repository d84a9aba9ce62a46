package refund

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"market/internal/money"
)

// The nonce is a promise to whoever looks for a refund on the chain with nothing but the payment in hand, so its bytes never change.
func TestNonce_IsTheHashThatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	asset := common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e")
	payer := common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8")
	payment := common.HexToHash("0xabababababababababababababababababababababababababababababababab")

	var b []byte
	b = append(b, "market/refund/1"...)
	b = append(b, make([]byte, 29)...) // 84532 as a 32-byte big-endian number
	b = append(b, 0x01, 0x4a, 0x34)
	b = append(b, common.FromHex("036cbd53842c5426634e7929541ec2318f3dcf7e")...)
	b = append(b, common.FromHex("70997970c51812dc3a010c7d01b50e0d17dc79c8")...)
	for range 32 {
		b = append(b, 0xab)
	}
	if want := 15 + 32 + 20 + 20 + 32; len(b) != want {
		t.Fatalf("%d bytes are hashed, want %d", len(b), want)
	}
	got, want := Nonce(84532, asset, payer, payment), common.BytesToHash(crypto.Keccak256(b))
	if got != want {
		t.Errorf("nonce = %s, want %s", got, want)
	}
	if golden := common.HexToHash(goldenNonce); got != golden {
		t.Errorf("nonce = %s, was %s", got, golden)
	}
}

const goldenNonce = "0xe2e4dcb3c695a976dde897d9584b55b97b6ad1cfc7315b3fcdb1f0ad3fafe286"

type inputs struct {
	chainID      uint64
	asset, payer common.Address
	payment      common.Hash
}

func (i inputs) nonce() common.Hash { return Nonce(i.chainID, i.asset, i.payer, i.payment) }

func drawInputs(t *rapid.T, name string) inputs {
	bytes := func(what string, n int) []byte {
		return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, name+" "+what)
	}
	return inputs{
		chainID: rapid.Uint64().Draw(t, name+" chain"), asset: common.BytesToAddress(bytes("asset", 20)),
		payer: common.BytesToAddress(bytes("payer", 20)), payment: common.BytesToHash(bytes("nonce", 32)),
	}
}

func TestNonce_ChangesWithEveryPartOfThePaymentsIdentity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, other := drawInputs(t, "one"), drawInputs(t, "other")
		first := one.nonce()
		if one.nonce() != first {
			t.Fatal("the same payment has two refund nonces")
		}
		for name, changed := range map[string]inputs{
			"chain":                   {other.chainID, one.asset, one.payer, one.payment},
			"asset":                   {one.chainID, other.asset, one.payer, one.payment},
			"payer":                   {one.chainID, one.asset, other.payer, one.payment},
			"payment nonce":           {one.chainID, one.asset, one.payer, other.payment},
			"asset and payer swapped": {one.chainID, one.payer, one.asset, one.payment},
		} {
			if (changed == one) != (changed.nonce() == one.nonce()) {
				t.Fatalf("another %s has the nonce %s, as before", name, one.nonce())
			}
		}
	})
}

func TestDerive_PaysTheWholeOfThePaymentBackToWhoPaid(t *testing.T) {
	t.Parallel()
	p := Payment{
		ChainID: 84532, Asset: common.Address{1}, Payer: common.Address{2}, Treasury: common.Address{3},
		Nonce: common.Hash{4}, Amount: money.FromUnits(12_345),
	}
	a := Derive(p).authorization(99)
	if a.From != p.Treasury || a.To != p.Payer || a.Value.Cmp(p.Amount) != 0 || a.ValidAfter != 0 || a.ValidBefore != 99 {
		t.Errorf("authorization = %+v, want all of %s from the treasury to the payer, before 99", a, p.Amount)
	}
	if want := Nonce(84532, p.Asset, p.Payer, p.Nonce); a.Nonce != want || a.Nonce == p.Nonce {
		t.Errorf("nonce = %s, want the one derived from the payment, %s", a.Nonce, want)
	}
}
