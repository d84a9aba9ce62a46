package payout

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/facilitator"
	"market/internal/ledger"
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

// pressed has two replicas and an admin press at once. One of them makes the payout.
func (s shelf) pressed(t *testing.T) (made Payout) {
	t.Helper()
	var (
		wg    sync.WaitGroup
		start = make(chan struct{})
		by    [3]Payout
		errs  [3]error
	)
	for i := range by {
		wg.Go(func() {
			<-start
			by[i], errs[i] = s.try(t.Context(), 1)
		})
	}
	close(start)
	wg.Wait()
	n := 0
	for i, err := range errs {
		if err == nil {
			made, n = by[i], n+1
		} else if !errors.Is(err, ErrOpen) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Fatalf("%d of them made a payout, want one", n)
	}
	return made
}

// B121: ten payees, of which number three is blocked by the token. Nine are paid, one is parked with a reason, and the books hold, whoever presses at once and
// however many replicas send.
func TestWorker_OnARealChainOneBlockedPayeeHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ours, gas := treasury(t), freshKey(t)
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
	s := newShelf(t)
	engine, err := facilitator.NewEngine(node, s.db, gas, facilitator.Options{Treasuries: []common.Address{ours.Address()}})
	if err != nil {
		t.Fatal(err)
	}
	const payees, blocked = 10, 3
	var all [payees]Payout
	for i := range all {
		of := s.another(t, fmt.Sprintf("service-%d", i), devnet.TokenAddress()).paidTo(t, freshKey(t).Address())
		of.earn(t, i+1)
		all[i] = of.pressed(t)
		if err := net.Mint(ctx, ours.Address(), all[i].Amount); err != nil {
			t.Fatal(err)
		}
	}
	s.exec(t, `ALTER TABLE payouts DISABLE TRIGGER payouts_kept`) // their payments are not on this chain
	s.exec(t, `UPDATE payouts SET from_block = 0`)
	if err := net.SetBlocked(ctx, all[blocked].Address, true); err != nil {
		t.Fatal(err)
	}
	rails := map[string]Rail{real.ID: {Network: real, Node: node, Sender: engine, Treasuries: map[common.Address]chain.Key{ours.Address(): ours}}}
	for range 6 {
		var wg sync.WaitGroup
		for range 2 {
			replica := NewWorker(s.db, rails, nil)
			wg.Go(func() {
				for _, p := range all {
					if err := run(t, replica, p); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if err := net.Mine(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	left := money.Amount{}
	for i, p := range all {
		got, wait := s.find(t, p.ID)
		want, has := StateConfirmed, p.Amount
		if i == blocked {
			want, has, left = StateParked, money.Amount{}, p.Amount
			if wait != parkedWait || got.Why == "" || got.Attempts != 0 {
				t.Errorf("the blocked one waits %s for %q, want %s with a reason", wait, got.Why, parkedWait)
			}
		}
		balance, err := net.BalanceOf(ctx, p.Address)
		if err != nil || got.State != want || balance.Cmp(has) != 0 {
			t.Errorf("payout %d is %s (%s), and the payee has %s, %v; want %s and %s", i, got.State, got.Why, balance, err, want, has)
		}
	}
	if holds, err := net.BalanceOf(ctx, ours.Address()); err != nil || holds.Cmp(left) != 0 {
		t.Errorf("the treasury has %s, %v; want %s", holds, err, left)
	}
	if f, err := (ledger.Store{}).Check(ctx, s.db, 10); err != nil || !f.Sound() {
		t.Errorf("the books are %+v, %v; want them sound", f, err)
	}
}
