package chain

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// A key that holds money may sign words, because no token has the domain that they are signed in, whatever it is called.
func TestStatementDomain_IsNoTokens(t *testing.T) {
	t.Parallel()
	const name = "x402 receipt"
	for _, address := range []common.Address{{}, common.HexToAddress("0x01")} {
		token := NewDomain(Asset{Address: address, EIP712Name: name, EIP712Version: "1"}, 1)
		if token.Separator() == NewStatementDomain(name).separator {
			t.Errorf("a token at %s has the domain of statements", address)
		}
	}
}

func TestKey_SignStatement_IsRecoveredAndRepeats(t *testing.T) {
	t.Parallel()
	raw, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	k, d, of := newKey(raw), NewStatementDomain("test"), common.HexToHash("0x1234")
	first, err := k.SignStatement(d, of)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := k.SignStatement(d, of); err != nil || again != first {
		t.Errorf("signed again: %x, %v, want %x", again, err, first)
	}
	if who, err := Recover(d.Digest(of), first); err != nil || who != k.Address() {
		t.Errorf("signed by %s, %v", who, err)
	}
	if _, err := (Key{}).SignStatement(d, of); err != ErrNoKey { //nolint:errorlint // it is returned as it is
		t.Errorf("no key signed: %v", err)
	}
}
