package facilitator

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/crash"
)

// resendEvery is the pause before bytes that the node did not take are sent again.
const resendEvery = 2 * time.Second

// A verdict is what a receipt says of a settlement.
type verdict int

const (
	_               verdict = iota
	verdictWait             // not mined, or not deep enough
	verdictSettled          // the transfer is proved
	verdictReverted         // the transaction was undone
	verdictUnproved         // it succeeded, and the transfer is not there
)

var errMismatch = errors.New("the transaction succeeded without the transfer: the asset does not do what it says")

// judge reads a receipt, nil for none.
func judge(r *chain.Receipt, want chain.Expect, depth int) (chain.Proof, verdict) {
	if r == nil || r.Depth < depth {
		return chain.Proof{}, verdictWait
	}
	if r.Reverted {
		return chain.Proof{}, verdictReverted
	}
	proof, ok := chain.ProofIn(r.Logs, want)
	if !ok {
		return chain.Proof{}, verdictUnproved
	}
	return proof, verdictSettled
}

// carry shows a stored transaction to the chain and waits for what becomes of it. It can be of another authorization with the same
// nonce, a refund that was signed anew for example: of the two the chain takes one, so it has to be known first what became of that.
func (e *Engine) carry(ctx context.Context, s chain.Signed, tx sending) chain.Settlement {
	w := e.watch.add(tx.hash)
	defer e.watch.remove(w)
	step := e.sendStep(s)
	crash.Before(step)
	err := e.node.Send(ctx, tx.raw)
	crash.After(step)
	again := time.NewTicker(resendEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return unknown(tx.hash, whyPending, errors.Join(err, ctx.Err()))
		case <-again.C:
			if chain.SentAs(err) == chain.SentUnclear {
				err = e.node.Send(ctx, tx.raw)
			}
		case r := <-w.seen:
			proof, v := judge(r, s.Expect(), e.node.Network().ServeAtDepth)
			switch v {
			case verdictSettled:
				return settled(proof)
			case verdictUnproved:
				if tx.carries(s) {
					return unknown(tx.hash, whyMismatch, errMismatch)
				}
				return e.resolveOther(ctx, s, tx)
			case verdictReverted:
				return e.resolveReverted(ctx, attempt{Signed: s, shown: shownBy(s, []sending{tx})}, tx.hash)
			case verdictWait:
			}
		}
	}
}

// await waits until the transfer that a transaction of somebody else made is deep enough.
func (e *Engine) await(ctx context.Context, s chain.Signed, transaction common.Hash) chain.Settlement {
	w := e.watch.add(transaction)
	defer e.watch.remove(w)
	for {
		select {
		case <-ctx.Done():
			return unknown(transaction, whyPending, ctx.Err())
		case r := <-w.seen:
			if proof, v := judge(r, s.Expect(), e.node.Network().ServeAtDepth); v == verdictSettled {
				return settled(proof)
			}
		}
	}
}
