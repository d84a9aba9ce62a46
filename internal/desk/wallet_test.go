package desk

import (
	"crypto/ecdsa"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
)

// signedBy is a payment of an account with code, with a key's signature and so many bytes behind it.
func (g *ground) signedBy(t *testing.T, s chain.Signed, key *ecdsa.PrivateKey, more ...byte) chain.Signed {
	t.Helper()
	digest := chain.NewDomain(g.network.Assets[0], devnet.ChainID).Digest(s.Authorization)
	raw, err := crypto.Sign(digest[:], key)
	if err != nil {
		t.Fatal(err)
	}
	raw[64] += 27
	if s.Signature, err = chain.ParseSignature(append(raw, more...)); err != nil {
		t.Fatal(err)
	}
	return s
}

func newECDSA(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A contract wallet has no key: it is believed, or not, by what it says itself, before its nonce is used and after.
func TestDesk_Settle_AContractWalletPaysByItsOwnWord(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	owner, thief := newECDSA(t), newECDSA(t)
	wallet, err := g.DeployWallet(t.Context(), crypto.PubkeyToAddress(owner.PublicKey), devnet.MoodHonest)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Mint(t.Context(), wallet, money.FromUnits(funds)); err != nil {
		t.Fatal(err)
	}
	s := g.authorize(t, nil)
	s.From = wallet
	forged, good := g.signedBy(t, s, thief), g.signedBy(t, s, owner)
	ask2 := func(name, route string, s chain.Signed, want string) {
		t.Helper()
		a := ask(t, url+route, g.body(payment.V2, s, nil))
		if a.status != http.StatusOK || a.yes() != (want == "") || a.code() != want || a.Payer != wallet.Hex() {
			t.Errorf("%s: %d %s, want %q", name, a.status, a.raw, want)
		}
	}
	const signature = "invalid_exact_evm_signature"
	ask2("a forged one is verified", "/verify", forged, signature)
	ask2("a forged one is settled", "/settle", forged, signature)
	ask2("the wallet's own is verified", "/verify", good, "")
	first := ask(t, url+"/settle", g.body(payment.V2, good, nil))
	g.wantSettled(t, payment.V2, good, first)
	if again := ask(t, url+"/settle", g.body(payment.V2, good, nil)); again.raw != first.raw {
		t.Errorf("again: %s, want %s", again.raw, first.raw)
	}
	ask2("a forged one once the nonce is used", "/settle", forged, signature)
	if n := g.transfers(t); n != 1 || g.sent(t) != 1 {
		t.Errorf("%d transfers by %d transactions, want one", n, g.sent(t))
	}
}

// A wallet that says yes while it is simulated and no on the chain costs us a transaction each time.
func TestDesk_Settle_ATwoFacedWalletCostsTwoTransactionsADay(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url, replica := g.desk(t, nil), g.desk(t, nil)
	owner := newECDSA(t)
	wallet, err := g.DeployWallet(t.Context(), crypto.PubkeyToAddress(owner.PublicKey), devnet.MoodTwoFaced)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Mint(t.Context(), wallet, money.FromUnits(funds)); err != nil {
		t.Fatal(err)
	}
	pay := func() object {
		s := g.authorize(t, nil)
		s.From = wallet
		return g.body(payment.V2, g.signedBy(t, s, owner), nil)
	}
	const failed = "invalid_exact_evm_transaction_failed"
	for n := 1; n <= 2; n++ {
		body := pay()
		first := ask(t, url+"/settle", body)
		if first.status != http.StatusOK || first.code() != failed || first.Transaction == "" {
			t.Fatalf("payment %d: %d %s, want %s with its transaction", n, first.status, first.raw, failed)
		}
		if again := ask(t, replica+"/settle", body); again.raw != first.raw || again.status != first.status {
			t.Errorf("payment %d again: %d %s, want %s", n, again.status, again.raw, first.raw)
		}
		if a := ask(t, url+"/verify", body); a.status != http.StatusOK || a.code() != failed {
			t.Errorf("payment %d, verified after that: %d %s, want %s", n, a.status, a.raw, failed)
		}
		if g.sent(t) != n {
			t.Fatalf("%d transactions for %d payments", g.sent(t), n)
		}
	}
	third := pay()
	for _, route := range []string{"/verify", "/settle"} {
		if a := ask(t, replica+route, third); a.status != http.StatusOK || a.code() != failed || a.Transaction != "" {
			t.Errorf("%s of the third: %d %s, want %s and no transaction", route, a.status, a.raw, failed)
		}
	}
	if n := g.sent(t); n != 2 {
		t.Errorf("%d transactions, want 2", n)
	}
	s := g.authorize(t, nil)
	g.wantSettled(t, payment.V2, s, ask(t, url+"/settle", g.body(payment.V2, s, nil)))
	pgtest.Shift(t, g.db, 25*time.Hour)
	if a := ask(t, url+"/settle", third); a.code() != failed || a.Transaction == "" {
		t.Errorf("a day later: %s, want that it is tried again", a.raw)
	}
}

// The no is kept by authorization. If the money moves after it, because somebody else sent the authorization, that is told.
func TestDesk_Settle_APaymentThatWasUndoneAndThenMadeIsSettled(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	s := g.authorize(t, nil)
	body := g.body(payment.V2, s, nil)
	no := chain.Settlement{Status: chain.StatusRejected, Transaction: common.Hash{7}, Why: "invalid_exact_evm_transaction_failed"}
	if err := (Undone{}).Add(t.Context(), g.db, g.network.ID, s, no); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, url+"/settle", body); a.code() != no.Why || a.Transaction != no.Transaction.Hex() || g.sent(t) != 0 {
		t.Errorf("%s, want the no that was kept and nothing sent", a.raw)
	}
	sent := g.sendAs(t, g.stranger, s)
	if got := g.wantSettled(t, payment.V2, s, ask(t, url+"/settle", body)); got != sent.Hex() || g.sent(t) != 0 {
		t.Errorf("settled by %s with %d transactions of ours, want %s", got, g.sent(t), sent)
	}
}

// Whoever has made payments that the chain undid is still told of one that paid.
func TestDesk_Settle_APayerThatIsRefusedHearsOfItsEarlierPayment(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	paid := g.authorize(t, nil)
	first := ask(t, url+"/settle", g.body(payment.V2, paid, nil))
	g.wantSettled(t, payment.V2, paid, first)
	for range payment.UndoneMax {
		no := chain.Settlement{Status: chain.StatusRejected, Transaction: common.Hash{7}, Why: "invalid_exact_evm_transaction_failed", PayerFault: true}
		if err := (Undone{}).Add(t.Context(), g.db, g.network.ID, g.authorize(t, nil), no); err != nil {
			t.Fatal(err)
		}
	}
	if again := ask(t, url+"/settle", g.body(payment.V2, paid, nil)); again.raw != first.raw {
		t.Errorf("the earlier payment again: %s, want %s", again.raw, first.raw)
	}
	if a := ask(t, url+"/settle", g.body(payment.V2, g.authorize(t, nil), nil)); a.code() != "invalid_exact_evm_transaction_failed" || g.sent(t) != 1 {
		t.Errorf("a new payment: %s and %d transactions, want a no and the one", a.raw, g.sent(t))
	}
}

func TestDesk_Verify_AWalletThatIsNotDeployedCanNotPay(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	s := g.authorize(t, nil)
	s.From = newKey(t).Address()
	s = g.signedBy(t, s, newECDSA(t), 1, 2, 3)
	plain, wrapped := hexutil.Encode(s.Signature.Bytes()), wrap(t, common.Address{1}, s.Signature.Bytes())
	for _, tt := range []struct{ signature, v1, v2 string }{
		{plain, "invalid_exact_evm_payload_signature", "invalid_exact_evm_signature"},
		{wrapped, "invalid_exact_evm_payload_undeployed_smart_wallet", "eip6492_factory_not_allowed"},
	} {
		for version, want := range map[payment.Version]string{payment.V1: tt.v1, payment.V2: tt.v2} {
			body := g.body(version, s, func(o object) { o.at("paymentPayload", "payload")["signature"] = tt.signature })
			for _, route := range []string{"/verify", "/settle"} {
				if a := ask(t, url+route, body); a.status != http.StatusOK || a.code() != want || a.Transaction != "" {
					t.Errorf("v%d, %s: %d %s, want %s", version, route, a.status, a.raw, want)
				}
			}
		}
	}
}

// wrap wraps a signature as ERC-6492 says: by a factory that could deploy the wallet.
func wrap(t *testing.T, factory common.Address, inner []byte) string {
	t.Helper()
	var form abi.Arguments
	for _, name := range []string{"address", "bytes", "bytes"} {
		kind, err := abi.NewType(name, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		form = append(form, abi.Argument{Type: kind})
	}
	packed, err := form.Pack(factory, []byte{}, inner)
	if err != nil {
		t.Fatal(err)
	}
	return hexutil.Encode(packed) + strings.Repeat("6492", 16)
}
