package devnet_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"market/internal/devnet"
)

// The chain has the rules of Prague, as Base has: a key can run a wallet's code, and stop running it.
func TestDelegate_GivesAKeyCodeAndTakesItBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	key := newKey(t)
	wallet, err := b.DeployWallet(t.Context(), addressOf(b.payer), devnet.MoodHonest)
	must(t, err)
	code := func(of common.Address) []byte {
		t.Helper()
		code, err := b.client.CodeAt(t.Context(), of, nil)
		must(t, err)
		return code
	}
	if len(code(wallet)) == 0 {
		t.Error("the wallet has no code")
	}
	must(t, b.Delegate(t.Context(), key, wallet, 0))
	if to, ok := types.ParseDelegation(code(addressOf(key))); !ok || to != wallet {
		t.Errorf("the key's account has code %x, want it to delegate to %s", code(addressOf(key)), wallet)
	}
	if err := b.Delegate(t.Context(), key, common.Address{}, 0); err == nil {
		t.Error("an authorization with a used nonce was taken")
	}
	must(t, b.Delegate(t.Context(), key, common.Address{}, 1))
	if left := code(addressOf(key)); len(left) != 0 {
		t.Errorf("the key's account still has code %x", left)
	}
}

func TestDeployWallet_RefusesNoMood(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, mood := range []devnet.Mood{0, -1, devnet.MoodFlooding + 1} {
		if at, err := b.DeployWallet(t.Context(), b.payee, mood); err == nil {
			t.Errorf("mood %d was deployed at %s", mood, at)
		}
	}
}
