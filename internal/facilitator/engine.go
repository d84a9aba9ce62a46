package facilitator

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
	"market/internal/crash"
)

// x402's official codes for what is not a refusal of the asset.
const (
	whyPending  = "settlement_pending"
	whyFailed   = "invalid_exact_evm_transaction_failed"
	whyMismatch = "invalid_exact_evm_transfer_event_mismatch"
	whyTrouble  = "unexpected_settle_error"
)

// An Engine settles authorizations of one network through one gas key, one in a transaction. Several engines, in several replicas, may
// share key and database. The gas wallet spends its native coin only.
type Engine struct {
	node  *chain.Node
	gas   chain.Key
	opts  Options
	store store
	watch *watch
}

// NewEngine returns an engine; Run has to run beside it.
func NewEngine(node *chain.Node, db *pgxpool.Pool, gas chain.Key, opts Options) (*Engine, error) {
	opts = opts.withDefaults()
	if err := opts.check(gas); err != nil {
		return nil, fmt.Errorf("make engine of %s: %w", node.Network().ID, err)
	}
	return &Engine{
		node:  node,
		gas:   gas,
		opts:  opts,
		store: store{db: db, network: node.Network().ID, sender: gas.Address()},
		watch: newWatch(node.Receipts),
	}, nil
}

// Settle moves the money of one authorization and returns when that is proved at the network's ServeAtDepth, or proved impossible, or
// the context ends. It may be called again with the same authorization, at any time and anywhere: the asset takes it once, and what
// was sent is sent again rather than replaced.
func (e *Engine) Settle(ctx context.Context, s chain.Signed) chain.Settlement {
	ctx, cancel := context.WithTimeout(ctx, e.opts.WaitMax)
	defer cancel()
	if err := e.permit(s); err != nil {
		return chain.Settlement{Status: chain.StatusReleased, Why: whyTrouble, Err: err}
	}
	earlier, err := e.store.earlier(ctx, s)
	if err != nil {
		return unknown(common.Hash{}, whyTrouble, err) // it may have been shown before
	}
	if len(earlier) > 0 && earlier[0].open {
		return e.carry(ctx, s, earlier[0])
	}
	a := attempt{Signed: s, shown: shownBy(s, earlier)}
	if len(earlier) > 0 {
		if done, ok := e.settledBy(ctx, s, earlier); ok {
			return done
		}
	}
	tip, err := e.prepare(ctx, s)
	if err != nil {
		return e.refuse(ctx, a, err)
	}
	tx, err := e.sign(ctx, s, tip)
	switch {
	case errors.Is(err, errUnsure):
		// Where it is stored, Run sends it.
		return unknown(tx.hash, whyPending, err)
	case err != nil:
		return e.refuse(ctx, a, err)
	}
	got := e.carry(ctx, s, tx)
	got.ByUs = got.Status == chain.StatusSettled && got.Proof.Transaction == tx.hash
	return got
}

// permit refuses what would be a mistake of ours: an engine that moves any token between any accounts pays strangers' gas.
func (e *Engine) permit(s chain.Signed) error {
	if _, ok := e.node.Network().Asset(s.Asset); !ok {
		return fmt.Errorf("settle on %s: asset %s is not configured", e.store.network, s.Asset)
	}
	if e.opts.Recipients != nil {
		if !e.opts.Recipients(s.To) {
			return fmt.Errorf("settle on %s: nobody asks for settlements to %s here", e.store.network, s.To)
		}
		return nil
	}
	if !slices.Contains(e.opts.Treasuries, s.To) && !slices.Contains(e.opts.Treasuries, s.From) {
		return fmt.Errorf("settle on %s: neither %s nor %s is a treasury of ours", e.store.network, s.From, s.To)
	}
	return nil
}

// settledBy looks whether one of the mined transactions of an authorization moved the money. False means that none did, and that another one may
// be sent. An engine that works for others sends none after one that the chain undid: those who ask do not pay for the gas.
func (e *Engine) settledBy(ctx context.Context, s chain.Signed, mined []sending) (chain.Settlement, bool) {
	hashes := make([]common.Hash, len(mined))
	for i, tx := range mined {
		hashes[i] = tx.hash
	}
	receipts, err := e.node.Receipts(ctx, hashes)
	if err != nil {
		return unknown(shownBy(s, mined), whyPending, err), true
	}
	var undone common.Hash
	for i, r := range receipts {
		proof, v := judge(r, s.Expect(), e.node.Network().ServeAtDepth)
		switch {
		case v == verdictSettled:
			return settled(proof), true
		case v == verdictUnproved && mined[i].carries(s):
			return unknown(r.Transaction, whyMismatch, errMismatch), true
		case v == verdictReverted && mined[i].carries(s):
			undone = mined[i].hash
		}
	}
	if e.opts.Recipients != nil && undone != (common.Hash{}) {
		return e.resolveReverted(ctx, attempt{Signed: s, shown: undone}, undone), true
	}
	return chain.Settlement{}, false
}

// sign takes a nonce and stores the signed transaction. errUnsure beside it means that it may be stored.
func (e *Engine) sign(ctx context.Context, s chain.Signed, tip chain.Tip) (sending, error) {
	f, err := feesFor(tip, e.opts.FeeCeiling)
	if err != nil {
		return sending{}, err
	}
	// What waits in the pool is paid from the same balance.
	settlements := tip.PendingNonce - tip.MinedNonce + 1
	if need := f.cost(e.opts.GasLimit, settlements); tip.Balance.Cmp(need) < 0 {
		return sending{}, &GasError{e.gas.Address(), tip.Balance, need, int(settlements)} //nolint:gosec // a nonce difference
	}
	data := chain.Calldata(s)
	return e.store.reserve(ctx, s, tip.PendingNonce, func(nonce uint64) (sending, error) {
		tx, err := e.gas.SignTransaction(types.NewTx(&types.DynamicFeeTx{
			ChainID:   new(big.Int).SetUint64(e.node.Network().ChainID),
			Nonce:     nonce,
			GasTipCap: f.priority,
			GasFeeCap: f.max,
			Gas:       e.opts.GasLimit,
			To:        &s.Asset,
			Data:      data,
		}), e.node.Network().ChainID)
		if err != nil {
			return sending{}, err
		}
		raw, err := tx.MarshalBinary()
		return sending{nonce: nonce, hash: tx.Hash(), raw: raw, open: true}, err
	})
}

// sendStep is what it is to show an authorization to the chain: a payment, or a refund where it is our own.
func (e *Engine) sendStep(s chain.Signed) crash.Step {
	if slices.Contains(e.opts.Treasuries, s.From) {
		return crash.RefundSend
	}
	return crash.Send
}

func settled(p chain.Proof) chain.Settlement {
	return chain.Settlement{Status: chain.StatusSettled, Proof: p, Transaction: p.Transaction}
}

func unknown(transaction common.Hash, why string, err error) chain.Settlement {
	return chain.Settlement{Status: chain.StatusUnknown, Transaction: transaction, Why: why, Err: err}
}
