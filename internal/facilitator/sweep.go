package facilitator

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/pulse"
)

// pagesMax bounds one round: 980 open transactions. The next round starts at the lowest nonce again.
const pagesMax = 20

// Run keeps what was signed moving until the context ends: it sends what is not mined again, lowest nonce first, so that no gap
// stays, and writes down what is mined for good. Every replica may run it.
func (e *Engine) Run(ctx context.Context) {
	// Whatever an earlier life of this program left is sent at once.
	dueAfter := time.Duration(0)
	for {
		if err := e.sweep(ctx, dueAfter); err != nil && ctx.Err() == nil {
			e.opts.Report(err)
		} else {
			dueAfter = e.opts.ResendAfter
		}
		pulse.Beat(ctx, e.opts.SweepEvery)
		if !rest(ctx, e.opts.SweepEvery) {
			return
		}
	}
}

// mined is the sender's state as of the newest block that is final.
type mined struct {
	nonce uint64 // the next one
	block uint64
}

func (e *Engine) sweep(ctx context.Context, dueAfter time.Duration) error {
	after := int64(-1)
	for range pagesMax {
		page, err := e.store.openAfter(ctx, after, dueAfter, chain.ReceiptsMax)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := e.sweepPage(ctx, page); err != nil {
			return err
		}
		after = int64(page[len(page)-1].nonce) //nolint:gosec // the schema keeps it as bigint
	}
	return nil
}

func (e *Engine) sweepPage(ctx context.Context, page []aged) error {
	depth := e.node.Network().Confirmations
	var final mined
	nonce, block, ok, err := e.node.MinedNonceAt(ctx, e.gas.Address(), depth)
	if err != nil {
		return fmt.Errorf("read final nonce of %s: %w", e.gas.Address(), err)
	}
	if ok {
		final = mined{nonce, block}
	}
	hashes := make([]common.Hash, len(page))
	for i, tx := range page {
		hashes[i] = tx.hash
	}
	receipts, err := e.node.Receipts(ctx, hashes)
	if err != nil {
		return fmt.Errorf("read receipts of %s: %w", e.gas.Address(), err)
	}
	var nonces, blocks []int64
	var resend []aged
	for i, tx := range page {
		switch f, block := fateOf(tx, receipts[i], final, depth); f {
		case fateClosed:
			nonces, blocks = append(nonces, int64(tx.nonce)), append(blocks, int64(block)) //nolint:gosec // both are checked where they are read
		case fateResend:
			resend = append(resend, tx)
		case fateWait:
		}
	}
	if len(nonces) > 0 {
		if err := e.store.close(ctx, nonces, blocks); err != nil {
			return err
		}
	}
	return e.resend(ctx, resend)
}

// A fate is what is to be done for an open transaction.
type fate int

const (
	_ fate = iota
	fateWait
	fateResend
	fateClosed
)

// fateOf closes a transaction at the block that makes it final: its own, or the one by which the chain has another transaction with its
// nonce, after which it can never be mined. A receipt that one node misses may close a transaction that was mined; Settle looks for
// the receipts of closed ones too, so that costs nothing.
func fateOf(tx aged, r *chain.Receipt, final mined, depth int) (fate, uint64) {
	switch {
	case r != nil && r.Depth >= depth:
		return fateClosed, r.BlockNumber
	case r != nil:
		return fateWait, 0
	case tx.nonce < final.nonce:
		return fateClosed, final.block
	case tx.due:
		return fateResend, 0
	}
	return fateWait, 0
}

// resend goes on after a refusal: a transaction behind one that is already known has to be sent all the same.
func (e *Engine) resend(ctx context.Context, page []aged) error {
	var first error
	for _, tx := range page {
		if err := e.node.Send(ctx, tx.raw); chain.SentAs(err) == chain.SentUnclear {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if first == nil {
				first = fmt.Errorf("send transaction %s with nonce %d again: %w", tx.hash, tx.nonce, err)
			}
		}
	}
	return first
}
