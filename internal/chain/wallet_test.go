package chain

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/devnet"
	"market/internal/money"
)

// An account pays by the signature of a key that need not be its own.
type account struct {
	address common.Address
	key     *ecdsa.PrivateKey
}

func (g *ground) wallet(t *testing.T, mood devnet.Mood) account {
	t.Helper()
	key := newECDSA(t)
	address, err := g.DeployWallet(t.Context(), crypto.PubkeyToAddress(key.PublicKey), mood)
	if err != nil {
		t.Fatal(err)
	}
	return g.funded(t, account{address, key})
}

// delegated is a key that runs somebody's code (EIP-7702).
func (g *ground) delegated(t *testing.T, to common.Address) account {
	t.Helper()
	key := newECDSA(t)
	if err := g.Delegate(t.Context(), key, to, 0); err != nil {
		t.Fatal(err)
	}
	return g.funded(t, account{crypto.PubkeyToAddress(key.PublicKey), key})
}

func (g *ground) funded(t *testing.T, a account) account {
	t.Helper()
	if err := g.Mint(t.Context(), a.address, money.FromUnits(funds)); err != nil {
		t.Fatal(err)
	}
	return a
}

func newECDSA(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signed is a payment of an account with its key's signature, followed by so many bytes.
func (g *ground) signed(t *testing.T, from account, more int) Signed {
	t.Helper()
	s := g.authorize(t, 100, nil)
	s.From = from.address
	digest := NewDomain(g.asset, devnet.ChainID).Digest(s.Authorization)
	raw, err := crypto.Sign(digest[:], from.key)
	if err != nil {
		t.Fatal(err)
	}
	raw[64] += 27
	if s.Signature, err = ParseSignature(append(raw, bytes.Repeat([]byte{1}, more)...)); err != nil {
		t.Fatal(err)
	}
	return s
}

// B27, B31: of an account with code its code decides, also where it is a key's own; the calldata that is simulated is the one that pays.
func TestNode_Simulate_AsksTheCodeOfAnAccountThatHasSome(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	wallet := g.wallet(t, devnet.MoodHonest)
	delegated := g.delegated(t, wallet.address)
	key := newECDSA(t)
	plain := g.funded(t, account{crypto.PubkeyToAddress(key.PublicKey), key})
	thief := account{wallet.address, newECDSA(t)}
	tests := map[string]struct {
		s    Signed
		want RevertKind // 0: it pays
	}{
		"a wallet, in the form of a key":                      {g.signed(t, wallet, 0), 0},
		"a wallet, in a form of its own":                      {g.signed(t, wallet, 1), 0},
		"a wallet, in the longest form":                       {g.signed(t, wallet, SignatureBytesMax-SignatureBytesMin), 0},
		"a wallet, by another key":                            {g.signed(t, thief, 0), RevertBadSignature},
		"a wallet, by another key in a form of its own":       {g.signed(t, thief, 1), RevertBadSignature},
		"a key without code":                                  {g.signed(t, plain, 0), 0},
		"a key without code, in the form of a wallet":         {g.signed(t, plain, 1), RevertBadSignature},
		"a key that delegated to a wallet":                    {g.signed(t, delegated, 0), 0},
		"a key that delegated to what knows no signature":     {g.signed(t, g.delegated(t, g.asset.Address), 0), RevertBadSignature},
		"a wallet that burns what gas it gets":                {g.signed(t, g.wallet(t, devnet.MoodBurning), 0), RevertBadSignature},
		"a wallet that says yes and tries to take more (B83)": {g.signed(t, g.wallet(t, devnet.MoodReentering), 0), 0},
	}
	for name, tt := range tests {
		before := g.balance(t, tt.s.From)
		checkSimulation(t, g, name, tt.s, tt.want)
		if tt.want != 0 {
			continue
		}
		r := g.pay(t, tt.s)
		if _, ok := ProofIn(r.Logs, tt.s.Expect()); !ok || r.Reverted {
			t.Errorf("%s: reverted %v, %d logs, want the transfer", name, r.Reverted, len(r.Logs))
		}
		if after := g.balance(t, tt.s.From); before-after != 100 {
			t.Errorf("%s: %d units left the account, want 100", name, before-after)
		}
	}
}

func (g *ground) balance(t *testing.T, of common.Address) uint64 {
	t.Helper()
	b, err := g.BalanceOf(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	return b.Big().Uint64()
}

// B83: an answer of any size costs the gas of one settlement and no more, and what it does to the token is no word of the token's.
func TestNode_Simulate_AWalletThatFloodsTheTokenIsNoEvidence(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	flood := g.wallet(t, devnet.MoodFlooding)
	err := g.node.Simulate(t.Context(), g.gas.Address(), SettleGas, g.signed(t, flood, 0))
	var (
		revert  *Revert
		trouble *Trouble
	)
	if errors.As(err, &revert) || !errors.As(err, &trouble) {
		t.Errorf("%v, want trouble", err)
	}
	if takes, err := g.node.Takes(t.Context(), flood.address, common.Hash{1}, g.signed(t, flood, 0).Signature); takes || err != nil {
		t.Errorf("a quarter of a megabyte of nothing is taken for yes: %v, %v", takes, err)
	}
	yes := hex.EncodeToString(magic[:])
	for bytes, want := range map[int]bool{1 << 10: true, wordMax: false} {
		long := dialFake(t, fakeNode{"eth_call": `"0x` + yes + strings.Repeat("00", bytes) + `"`})
		if takes, err := long.Takes(t.Context(), flood.address, common.Hash{1}, g.signed(t, flood, 0).Signature); takes != want || err != nil {
			t.Errorf("a yes with %d bytes after it: %v, %v", bytes, takes, err)
		}
	}
}

func TestNode_Takes_OnlyAWalletsYesIsYes(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	wallet := g.wallet(t, devnet.MoodHonest)
	s := g.signed(t, wallet, 0)
	digest := NewDomain(g.asset, devnet.ChainID).Digest(s.Authorization)
	g.pay(t, s) // the wallet's word outlives the nonce
	for name, tt := range map[string]struct {
		wallet    common.Address
		signature Signature
		want      bool
	}{
		"the wallet's own":               {wallet.address, s.Signature, true},
		"its owner's over another":       {wallet.address, g.signed(t, wallet, 0).Signature, false},
		"another key's":                  {wallet.address, g.signed(t, account{wallet.address, newECDSA(t)}, 1).Signature, false},
		"an account without code":        {g.payer.Address(), s.Signature, false},
		"a contract that is no wallet":   {g.asset.Address, s.Signature, false},
		"a wallet that is another one's": {g.wallet(t, devnet.MoodHonest).address, s.Signature, false},
	} {
		if got, err := g.node.Takes(t.Context(), tt.wallet, digest, tt.signature); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tt.want)
		}
	}
	if _, err := g.node.Takes(t.Context(), g.wallet(t, devnet.MoodBurning).address, digest, s.Signature); err == nil {
		t.Error("a wallet that burns the gas has answered")
	}
}
