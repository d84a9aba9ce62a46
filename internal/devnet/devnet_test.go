package devnet_test

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"

	"market/internal/devnet"
)

// Several accounts send as fast as they can, which is worth far more blocks than the burst allows, while the head is watched.
func TestChain_NeverGetsFurtherAheadThanItsBurst(t *testing.T) {
	t.Parallel()
	const accounts, each, burst = 6, 50, 3
	alloc := map[common.Address]*big.Int{}
	keys := make([]*ecdsa.PrivateKey, accounts)
	for i := range keys {
		keys[i] = newKey(t)
		alloc[addressOf(keys[i])] = big.NewInt(params.Ether)
	}
	chain := start(t, devnet.Options{Burst: burst, Alloc: alloc})
	client := ethclient.NewClient(dial(t, chain))

	var senders sync.WaitGroup
	for _, key := range keys {
		senders.Go(func() {
			for nonce := range uint64(each) {
				tx := signTx(t, key, nonce, addressOf(key), big.NewInt(1), nil)
				if err := client.SendTransaction(t.Context(), tx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var lead, seen int64
	poll(t, "all transactions mined", func() bool {
		head, err := chain.Head(t.Context())
		must(t, err)
		lead = max(lead, int64(head.Time)-time.Now().Unix())
		seen = head.Number.Int64()
		for _, key := range keys {
			mined, err := client.NonceAt(t.Context(), addressOf(key), nil)
			must(t, err)
			if mined < each {
				return false
			}
		}
		return true
	})
	senders.Wait()
	if lead < 1 || lead > burst {
		t.Errorf("the head was up to %d s ahead over %d blocks, want 1 to %d", lead, seen, burst)
	}
}

func TestChain_MinesEmptyBlocksAtWallTimeWhileIdle(t *testing.T) {
	t.Parallel()
	chain := start(t, devnet.Options{})
	first, err := chain.Head(t.Context())
	must(t, err)
	must(t, chain.Mine(t.Context(), 3)) // without burst these are the blocks that come anyway
	last, err := chain.Head(t.Context())
	must(t, err)
	if behind := time.Now().Unix() - int64(last.Time); behind < 0 || behind > 2 {
		t.Errorf("the head is %d s behind wall time, want 0 to 2", behind)
	}
	blocks := last.Number.Uint64() - first.Number.Uint64()
	if seconds := last.Time - first.Time; blocks < 3 || seconds < blocks || seconds > blocks+2 {
		t.Errorf("%d blocks over %d seconds of chain time, want one a second and at least 3", blocks, seconds)
	}
}

func TestChain_Mine_BringsDepthAtOnceWithinTheBurst(t *testing.T) {
	t.Parallel()
	chain := start(t, devnet.Options{Burst: 30})
	before, err := chain.Head(t.Context())
	must(t, err)
	began := time.Now()
	must(t, chain.Mine(t.Context(), 10))
	after, err := chain.Head(t.Context())
	must(t, err)
	if got := after.Number.Uint64() - before.Number.Uint64(); got < 10 {
		t.Errorf("%d more blocks, want at least 10", got)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %s: that is the pace without a burst", took)
	}
}

func TestChain_Pause_LeavesWhatIsSentUnmined(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Pause()
	held := b.head(t)
	tx := signTx(t, b.relayer, 0, b.payee, big.NewInt(7), nil)
	must(t, b.client.SendTransaction(t.Context(), tx))
	// In this time an unpaused chain would have mined at least once, whatever its lead was.
	poll(t, "wall time past the head's", func() bool {
		if got := b.head(t); got.Hash() != held.Hash() {
			t.Fatalf("block %s was mined while paused", got.Number)
		}
		return time.Now().Unix() > int64(held.Time)+1
	})
	if _, err := b.client.TransactionReceipt(t.Context(), tx.Hash()); !errors.Is(err, ethereum.NotFound) {
		t.Errorf("receipt while paused: %v, want %v", err, ethereum.NotFound)
	}
	if _, pending, err := b.client.TransactionByHash(t.Context(), tx.Hash()); err != nil || !pending {
		t.Errorf("pending = %t, %v, want true", pending, err)
	}
	b.Resume()
	if receipt := b.mined(t, tx.Hash()); receipt.Status != types.ReceiptStatusSuccessful {
		t.Error("the held transaction failed")
	}
}

func TestChain_FundGas_GivesEther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	must(t, b.FundGas(t.Context(), b.payee, big.NewInt(params.GWei)))
	wei, err := b.client.BalanceAt(t.Context(), b.payee, nil)
	must(t, err)
	if wei.Cmp(big.NewInt(params.GWei)) != 0 {
		t.Errorf("balance = %s wei, want 1 gwei", wei)
	}
}

func TestChain_Mint_WorksFromManyGoroutinesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := b.Mint(t.Context(), b.payee, units(3)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := b.balance(t, b.payee); got != "60" {
		t.Errorf("balance = %s, want 60", got)
	}
}

// A block too many for each transaction would use up the burst twice as fast.
func TestChain_Mint_TakesOneBlock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const mints = 12
	before, began := b.head(t).Number.Int64(), time.Now()
	for range mints {
		must(t, b.Mint(t.Context(), b.payee, units(1)))
	}
	idle := int64(time.Since(began)/time.Second) + 1
	if blocks := b.head(t).Number.Int64() - before; blocks > mints+idle {
		t.Errorf("%d blocks for %d transactions, want at most %d", blocks, mints, mints+idle)
	}
}

func TestChain_Mint_TellsOfARevert(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.Mint(t.Context(), common.Address{}, units(1)); !errors.Is(err, devnet.ErrReverted) {
		t.Errorf("minting to nobody: %v, want %v", err, devnet.ErrReverted)
	}
	must(t, b.Mint(t.Context(), b.payee, units(1))) // the nonce of the reverted one is not given out again
}

func TestChain_Mint_OutlivesACallerThatLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Pause()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := b.Mint(gone, b.payee, units(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("minting with a cancelled context: %v, want %v", err, context.Canceled)
	}
	b.Resume()
	must(t, b.Mint(t.Context(), b.payee, units(2)))
	if got := b.balance(t, b.payee); got != "3" {
		t.Errorf("balance = %s, want 3: both were sent, in order", got)
	}
}

func TestChain_Close_EndsWaitingAndFreesThePort(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	chain := start(t, devnet.Options{Port: port})
	chain.Pause()
	waiting := make(chan error)
	go func() { waiting <- chain.Mine(t.Context(), 1) }()
	must(t, chain.Close())
	if err := <-waiting; !errors.Is(err, devnet.ErrStopped) {
		t.Errorf("who waited got %v, want %v", err, devnet.ErrStopped)
	}
	must(t, chain.Close())

	again := start(t, devnet.Options{Port: port})
	if want := fmt.Sprintf("http://127.0.0.1:%d", port); again.URL() != want {
		t.Errorf("serves at %s, want %s", again.URL(), want)
	}
}

// freePort looks below the range from which systems take ports for whoever asks for any, so that no test of this package, which all
// do, takes it meanwhile.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(10_000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		must(t, listener.Close())
		return port
	}
	t.Fatal("no free port in 100 attempts")
	return 0
}

func TestStart_FailsOnATakenPort(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	if chain, err := devnet.Start(t.Context(), devnet.Options{Port: port}); err == nil {
		t.Errorf("started at %s", chain.URL())
	}
}

// A node that is still indexing answers with another error, which a client could not tell from trouble.
func TestStart_KnowsAtOnceWhichTransactionsItHasNot(t *testing.T) {
	t.Parallel()
	chain := start(t, devnet.Options{})
	client := ethclient.NewClient(dial(t, chain))
	if _, err := client.TransactionReceipt(t.Context(), common.Hash{1}); !errors.Is(err, ethereum.NotFound) {
		t.Errorf("receipt of an unknown transaction: %v, want %v", err, ethereum.NotFound)
	}
}
