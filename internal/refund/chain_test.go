package refund

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/facilitator"
	"market/internal/money"
)

func freshKey(t *testing.T) chain.Key {
	t.Helper()
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	k, err := chain.ParseKey(hex.EncodeToString(b[:]))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWorker_OnARealChainThePayerHasItsMoneyBackOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newShelf(t)
	ours, payer, gas := treasury(t), freshKey(t), freshKey(t)
	net, err := devnet.Start(ctx, devnet.Options{
		Burst: 30, Alloc: map[common.Address]*big.Int{gas.Address(): new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	real := network
	real.RPC = []string{net.URL()}
	real.Assets = []chain.Asset{{Address: devnet.TokenAddress(), Symbol: devnet.TokenSymbol, Decimals: devnet.TokenDecimals,
		EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion}}
	node, err := chain.Dial(ctx, real)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	engine, err := facilitator.NewEngine(node, s.db, gas, facilitator.Options{Treasuries: []common.Address{ours.Address()}})
	if err != nil {
		t.Fatal(err)
	}

	p := s.payment(t)
	p.Payer = payer.Address()
	if err := net.Mint(ctx, p.Payer, p.Amount); err != nil {
		t.Fatal(err)
	}
	head, err := node.FreshHead(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a := chain.Authorization{From: p.Payer, To: p.Treasury, Value: p.Amount, ValidBefore: head.Time + 600, Nonce: p.Nonce}
	signature, err := payer.SignAuthorization(chain.NewDomain(real.Assets[0], real.ChainID), a)
	if err != nil {
		t.Fatal(err)
	}
	paid := engine.Settle(ctx, chain.Signed{Asset: p.Asset, Authorization: a, Signature: signature})
	if paid.Status != chain.StatusSettled {
		t.Fatalf("payment = %+v, want it settled", paid)
	}
	p.Transaction = paid.Proof.Transaction
	o := Derive(p)
	if err := (Store{}).Owe(ctx, s.db, o); err != nil {
		t.Fatal(err)
	}

	w := NewWorker(s.db, map[string]Rail{real.ID: {Network: real, Node: node, Sender: engine, Treasuries: Treasuries(ours)}})
	const stepsMax = 10
	for range stepsMax {
		mustRun(t, w, o)
		if r, _ := s.find(t, o); r.State == StateConfirmed {
			break
		}
		if err := net.Mine(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := s.find(t, o)
	proof, depth, found, err := node.Locate(ctx, o.expectRefund(), r.Transaction)
	if err != nil || !found || depth < real.Confirmations || r.State != StateConfirmed {
		t.Fatalf("refund is %s by %s: proof %+v at depth %d, found %v, %v", r.State, r.Transaction, proof, depth, found, err)
	}
	for of, want := range map[common.Address]money.Amount{p.Payer: p.Amount, p.Treasury: {}} {
		if got, err := net.BalanceOf(ctx, of); err != nil || got.Cmp(want) != 0 {
			t.Errorf("%s has %s, %v; want %s", of, got, err, want)
		}
	}
}
