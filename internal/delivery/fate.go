package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/postgres"
	"market/internal/readiness"
)

const (
	// lookBack is how many blocks before the claim a transfer is looked for: whoever saw the authorization may have sent it before us.
	lookBack = 1_800
	// resendTime bounds the sending of a payment that dropped out of the chain.
	resendTime = 10 * time.Second

	whyLost = "the chain took the payment back"

	// surelyUsed is how long a nonce has to look used by something else before that is final: an index of logs may lag behind the state.
	surelyUsed = 10 * time.Second
)

// The states of a payment's own life.
const (
	paymentSent  = "sent"
	paymentMined = "mined"
	paymentFinal = "final"
	paymentLost  = "lost"
)

// A Chain proves what became of a payment.
type Chain interface {
	BlockTime(ctx context.Context, number uint64) (uint64, error)
	FindSettlementTo(ctx context.Context, want chain.Expect, fromBlock, reach uint64) (chain.Proof, bool, error)
	Locate(ctx context.Context, want chain.Expect, transaction common.Hash) (proof chain.Proof, depth int, found bool, err error)
	LapsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, validBefore uint64, depth int) (bool, error)
	UsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, depth int) (used bool, block uint64, err error)
}

// A fate is what the chain says became of an authorization; none of the three where it may still pay.
type fate struct {
	onChain       bool
	proof         chain.Proof
	depth         int
	usedElsewhere bool // its nonce was used by something else, at the depth that makes it final
	lapsed        bool
}

// fateOf concludes from several answers, so one node gives all of them.
func (p *Path) fateOf(ctx context.Context, rail Rail, c openCall) (f fate, err error) {
	err = chain.OneView(ctx, func(ctx context.Context) error {
		f, err = fateIn(ctx, rail, c)
		return err
	})
	return f, err
}

func fateIn(ctx context.Context, rail Rail, c openCall) (f fate, err error) {
	want, s, depth := c.Signed.Expect(), c.Signed, rail.Network.Confirmations
	// The nonce is read before the logs, so that whatever used it is in them. The other way round, a transfer between the two reads would
	// pass for something else.
	used, block, err := rail.Chain.UsedAt(ctx, s.Asset, s.From, s.Nonce, depth)
	if err != nil {
		return fate{}, err
	}
	proof, onChain, err := rail.Chain.FindSettlementTo(ctx, want, c.lookFrom(), block)
	if err != nil {
		return fate{}, err
	}
	if onChain {
		f.proof, f.depth, f.onChain, err = rail.Chain.Locate(ctx, want, proof.Transaction)
		return f, err
	}
	if used {
		return fate{usedElsewhere: true}, nil
	}
	f.lapsed, err = rail.Chain.LapsedAt(ctx, s.Asset, s.From, s.Nonce, s.ValidBefore, depth)
	return f, err
}

// lookFrom is the first block in which the payment is looked for.
func (c openCall) lookFrom() uint64 { return c.ClaimedBlock - min(c.ClaimedBlock, lookBack) }

// resolve finds out what became of an authorization that was, or may have been, shown.
func (p *Path) resolve(ctx context.Context, rail Rail, c openCall) error {
	f, err := p.fateOf(ctx, rail, c)
	switch {
	case err != nil || f.onChain && f.depth < rail.Network.ServeAtDepth:
		return err
	case f.onChain:
		review, err := p.needsReview(ctx, rail, f.proof, c.ClaimedBlock)
		if err != nil {
			return err
		}
		return found(ctx, p.DB, c, f.proof, review || c.Review)
	case f.usedElsewhere && c.State == call.Rejected && c.Since < surelyUsed:
		return nil // looked at again: that a log is not there yet is no proof
	case f.usedElsewhere && c.State == call.Rejected:
		return p.recordSwept(ctx, c, call.SettleRejected, "the payment's nonce was used by something else", 0, nil)
	case f.usedElsewhere:
		return turn(ctx, p.DB, c, call.Rejected, "its nonce was used by something else")
	case f.lapsed && c.State == call.Rejected:
		return p.recordSwept(ctx, c, call.SettleRejected, "the token refused the payment", 0, nil)
	case f.lapsed:
		return turn(ctx, p.DB, c, call.Expired, "its time is over and its nonce unused")
	}
	return nil
}

// follow reads whether a mined payment still stands, and whether it is final.
func (p *Path) follow(ctx context.Context, rail Rail, c openCall) (stands, isFinal bool, err error) {
	proof, depth, onChain, err := rail.Chain.Locate(ctx, c.Signed.Expect(), c.Proof.Transaction)
	if err != nil {
		return false, false, err
	}
	if !onChain {
		// A node that has not come to the payment's block yet does not have it either: only one that has can say that it is gone.
		proof, onChain, err = rail.Chain.FindSettlementTo(ctx, c.Signed.Expect(), c.lookFrom(), c.Proof.BlockNumber)
		if err != nil {
			return false, false, err
		}
		depth = 0
	}
	if !onChain {
		_, err := dropped(ctx, p.DB, c, paymentSent)
		return false, false, err
	}
	if proof != c.Proof {
		return true, false, lives(ctx, p.DB, c, paymentMined, proof, sweepEvery)
	}
	return true, depth >= rail.Network.Confirmations, nil
}

// sendAgain puts a payment that the chain dropped back on it, or writes it off once it is proved never to come back. The payment may never have
// been there, where a facilitator said so.
func (p *Path) sendAgain(ctx context.Context, rail Rail, c openCall) error {
	f, err := p.fateOf(ctx, rail, c)
	switch {
	case err != nil:
		return err
	case f.onChain && c.Word != "" && f.depth < rail.Network.ServeAtDepth:
		return nil // no proof yet, by the measure of every other payment, and nothing to send again
	case f.onChain:
		p.unseen.Delete(c.Word)
		return lives(ctx, p.DB, c, paymentMined, f.proof, 0)
	case f.usedElsewhere && c.Word != "" && (c.WordAge < wordPatience || c.UsedFor < surelyUsed):
		return sawUsed(ctx, p.DB, c, true) // looked at again: that a log is not there yet is no proof
	case f.usedElsewhere, f.lapsed:
		return p.lose(ctx, c)
	case c.Word != "" && c.UsedFor > 0:
		return sawUsed(ctx, p.DB, c, false)
	case c.Word != "":
		return p.sendWordAgain(ctx, rail, c)
	}
	sending, cancel := context.WithTimeout(ctx, resendTime)
	defer cancel()
	began := time.Now()
	result := rail.Settler.Settle(sending, c.Signed)
	if result.ByUs {
		p.Ready.Proved(rail.Network.ID, readiness.Settle, began)
	}
	switch {
	case result.Status != chain.StatusSettled && limited(result.Err):
		return nil // looked at again; that a facilitator is out was told when it was found out
	case result.Status != chain.StatusSettled:
		return result.Err // looked at again
	}
	return lives(ctx, p.DB, c, paymentMined, result.Proof, 0)
}

// The first of the looks that find the nonce used without a log counts, until one finds it unused.
const sawUsedSQL = `UPDATE calls SET used_since = CASE WHEN $2 THEN coalesce(used_since, market_now()) END WHERE id = $1`

// sawUsed keeps since when the nonce of a payment that was believed looks used by something else.
func sawUsed(ctx context.Context, db postgres.DB, c openCall, used bool) error {
	if _, err := db.Exec(ctx, sawUsedSQL, c.ID, used); err != nil {
		return fmt.Errorf("keep whether the nonce of call %s is used: %w", c.ID, err)
	}
	return nil
}

// lose writes a payment off: nothing is owed for money that the chain took back, or that never came. A call that somebody walks is ended by
// whoever does.
func (p *Path) lose(ctx context.Context, c openCall) error {
	var ours bool
	err := pgx.BeginFunc(ctx, p.DB, func(tx pgx.Tx) (err error) {
		if ours, err = dropped(ctx, tx, c, paymentLost); err != nil || !ours {
			return err
		}
		if err := p.Recorder.refunds.Void(ctx, tx, c.ID, c.whyLost()); err != nil {
			return err
		}
		if !c.Free || c.State != call.Settled && c.State != call.Asked {
			return nil
		}
		return p.Recorder.write(ctx, tx, c.delivery().end(call.SettlementLost, c.whyLost()))
	})
	if err == nil && ours && c.Word != "" {
		p.OnError(fmt.Errorf("facilitator %s said that transaction %s settles call %s, and the payment lapsed unpaid: %s base units of %s on %s are not coming; "+
			"it is not believed any more, and what it settles is proved first", c.Word, c.Sent, c.ID, c.Signed.Value, c.Signed.Asset, c.Network))
	}
	return err
}

func (c openCall) whyLost() string {
	if c.Word != "" {
		return whyFalse
	}
	return whyLost
}
