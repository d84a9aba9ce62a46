package apptest

import (
	"crypto/ecdsa"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/payment"
)

// A Wallet is an account that pays and whose word is not its own key's: a contract's, or a key's that delegated to one.
type Wallet struct {
	Address common.Address
	Owner   *ecdsa.PrivateKey
}

// Wallet deploys a contract wallet that holds so many base units.
func (w *World) Wallet(t testing.TB, units uint64, mood devnet.Mood) Wallet {
	t.Helper()
	owner := private(t)
	address, err := w.Chain.DeployWallet(t.Context(), crypto.PubkeyToAddress(owner.PublicKey), mood)
	if err != nil {
		t.Fatal(err)
	}
	w.Mint(t, address, units)
	return Wallet{address, owner}
}

// Plain makes a key that holds so many base units and signs for itself.
func (w *World) Plain(t testing.TB, units uint64) Wallet {
	t.Helper()
	owner := private(t)
	account := Wallet{crypto.PubkeyToAddress(owner.PublicKey), owner}
	w.Mint(t, account.Address, units)
	return account
}

// Delegated makes a key that holds so many base units and delegates to a contract (EIP-7702).
func (w *World) Delegated(t testing.TB, units uint64, to common.Address) Wallet {
	t.Helper()
	account := w.Plain(t, units)
	if err := w.Chain.Delegate(t.Context(), account.Owner, to, 0); err != nil {
		t.Fatal(err)
	}
	return account
}

// SignAs pays the first entry of a challenge from an account with the signature of its owner's key, in the form that the account wants it;
// nil: as the key gives it. Each call signs another payment.
func (w *World) SignAs(t testing.TB, payer Wallet, required payment.Required, form func(ofKey []byte) []byte) string {
	t.Helper()
	accepted := required.Accepts[0]
	a, domain := w.unsigned(t, payer.Address, accepted, accepted.MaxTimeoutSeconds)
	digest := domain.Digest(a)
	raw, err := crypto.Sign(digest[:], payer.Owner)
	if err != nil {
		t.Fatal(err)
	}
	raw[64] += 27
	signature, err := chain.ParseSignature(raw)
	if err != nil {
		t.Fatal(err)
	}
	header, err := payment.EncodePayload(accepted, required.Resource, chain.Signed{Asset: accepted.Asset, Authorization: a, Signature: signature})
	if err != nil {
		t.Fatal(err)
	}
	if form == nil {
		return header
	}
	return WithSignature(t, header, form(raw))
}

// WithSignature returns a payment header with another signature.
func WithSignature(t testing.TB, header string, signature []byte) string {
	t.Helper()
	return Rewritten(t, header, func(payload map[string]any) {
		inner, _ := payload["payload"].(map[string]any)
		inner["signature"] = hexutil.Encode(signature)
	})
}

func private(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

const sentSQL = `SELECT count(*) FROM engine_transactions`

// Sent counts the transactions that were signed.
func (w *World) Sent(t testing.TB) (n int) {
	t.Helper()
	if err := w.DB.QueryRow(t.Context(), sentSQL).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const namedSQL = `SELECT count(*) FROM deliveries WHERE payer IS NOT NULL`

// Nothing says that nothing was claimed, signed, or written under a payer's name.
func (w *World) Nothing(t testing.TB) {
	t.Helper()
	var named int
	if err := w.DB.QueryRow(t.Context(), namedSQL).Scan(&named); err != nil {
		t.Fatal(err)
	}
	if calls, sent := w.Rows(t).Calls, w.Sent(t); calls != 0 || sent != 0 || named != 0 {
		t.Errorf("%d claims, %d transactions and %d deliveries of a payer were written, want none", calls, sent, named)
	}
}
