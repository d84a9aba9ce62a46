package desk

import (
	"crypto/ecdsa"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/payment"
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

func TestDesk_Verify_AWalletThatIsNotDeployedCanNotPay(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	s := g.authorize(t, nil)
	s.From = newKey(t).Address()
	s = g.signedBy(t, s, newECDSA(t), 1, 2, 3)
	for _, route := range []string{"/verify", "/settle"} {
		if a := ask(t, url+route, g.body(payment.V2, s, nil)); a.status != http.StatusOK || a.code() != "invalid_exact_evm_signature" {
			t.Errorf("%s: %d %s, want that nobody signed it", route, a.status, a.raw)
		}
	}
}
