package devnet_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"

	"market/internal/devnet"
)

func TestChain_Reorg_TakesWhatTheBlocksHeldBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := b.authorize(t)
	old := b.send(t, b.pack(t, transferVRS, a))
	head := b.head(t)
	must(t, b.Reorg(t.Context(), old.BlockNumber.Uint64()))
	if b.used(t, a) || b.balance(t, b.payee) != "0" {
		t.Error("the transfer still stands")
	}
	if _, err := b.client.TransactionReceipt(t.Context(), old.TxHash); !errors.Is(err, ethereum.NotFound) {
		t.Errorf("its receipt: %v, want none", err)
	}
	if _, _, err := b.client.TransactionByHash(t.Context(), old.TxHash); !errors.Is(err, ethereum.NotFound) {
		t.Errorf("the transaction itself: %v, want it gone from the pool", err)
	}
	now := b.head(t)
	if now.Number.Cmp(head.Number) <= 0 || now.Time <= head.Time {
		t.Errorf("the head is block %s at %d, want it past block %s at %d", now.Number, now.Time, head.Number, head.Time)
	}
	gone, err := b.client.HeaderByNumber(t.Context(), old.BlockNumber)
	must(t, err)
	if gone.Hash() == old.BlockHash {
		t.Error("the block that held it still stands")
	}
	again := b.send(t, b.pack(t, transferVRS, a))
	if again.Status != types.ReceiptStatusSuccessful || again.BlockNumber.Cmp(head.Number) <= 0 {
		t.Errorf("sent again: mined in block %s %s with status %d, want it in a block after %s; before it was in %s %s", again.BlockNumber, again.BlockHash, again.Status, head.Number, old.BlockNumber, old.BlockHash)
	}
	poll(t, "the head has it", func() bool { return b.used(t, a) }) // a receipt is there a moment before its block is the head
}

func TestChain_Reorg_LeavesTheOwnerAbleToSend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.head(t).Number.Uint64()
	must(t, b.Mint(t.Context(), b.payee, units(3)))
	must(t, b.Reorg(t.Context(), before+1))
	if got := b.balance(t, b.payee); got != "0" {
		t.Errorf("balance = %s, want the mint undone", got)
	}
	must(t, b.Mint(t.Context(), b.payee, units(4)))
	if got := b.balance(t, b.payee); got != "4" {
		t.Errorf("balance = %s, want 4", got)
	}
}

func TestChain_Reorg_KeepsThePace(t *testing.T) {
	t.Parallel()
	const burst = 6
	chain := start(t, devnet.Options{Burst: burst})
	must(t, chain.Mine(t.Context(), 4))
	for range 3 {
		head, err := chain.Head(t.Context())
		must(t, err)
		must(t, chain.Reorg(t.Context(), head.Number.Uint64()-2))
		head, err = chain.Head(t.Context())
		must(t, err)
		if lead := int64(head.Time) - time.Now().Unix(); lead > burst {
			t.Fatalf("the head is %d s ahead, want at most %d", lead, burst)
		}
	}
}

func TestChain_Reorg_RefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	chain := start(t, devnet.Options{})
	for _, from := range []uint64{0, 1000} {
		if err := chain.Reorg(t.Context(), from); err == nil {
			t.Errorf("block %d was taken back", from)
		}
	}
}

func TestChain_ReorgAgainst_UndoesWhatComesAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := b.authorize(t)
	old := b.send(t, b.pack(t, transferVRS, a))
	must(t, b.ReorgAgainst(t.Context(), old.BlockNumber.Uint64(), a.from))
	if again := b.send(t, b.pack(t, transferVRS, a)); again.Status != types.ReceiptStatusFailed {
		t.Error("the blocked payer's transfer went through")
	}
	if b.used(t, a) {
		t.Error("its nonce is used")
	}
	data := b.encode(t, "isBlacklisted(address)", a.from)
	answer, err := b.call(t, b.payee, data)
	must(t, err)
	if new(big.Int).SetBytes(answer).Sign() == 0 {
		t.Error("the token does not block the payer")
	}
}
