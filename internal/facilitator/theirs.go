package facilitator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/crash"
	"market/internal/facilitator/remote"
	"market/internal/readiness"
	"market/internal/source"
)

const (
	// lookTime is kept of the last facilitator's time for a look of our own at the chain.
	lookTime = 2 * time.Second
	// byLogEvery is how many looks for a transaction that nobody has go by before the transfer is looked for by its logs: it can have been
	// sent again under another hash.
	byLogEvery = 4
	// troubleRest and wordRest are how long a facilitator comes last after it left something unclear, or claimed a payment that our node
	// did not see. It is still used where no other is there.
	troubleRest = 5 * time.Second
	wordRest    = time.Minute
	// lookBack is in how many of the newest blocks the transfer of a used nonce is looked for, as in Options.
	lookBack = 1_800
)

// theirs is somebody else's facilitator on one network. It is told what we have checked, and believed as far as our own node bears it out.
type theirs struct {
	client     *remote.Client
	node       *chain.Node
	treasuries []common.Address
	later      bool // its word may be offered to whoever asks
	now        func() time.Time

	lastUntil atomic.Int64 // until when it comes last, in Unix nanoseconds
}

func (t *theirs) look(ctx context.Context) (time.Duration, error) {
	validFor, err := t.client.Prove(ctx, t.node.Network())
	if trouble, ok := errors.AsType[*remote.Trouble](err); ok && trouble.Definite() {
		err = &readiness.Denied{Why: err}
	}
	return validFor, err
}

func (t *theirs) limited() error { return t.client.Limited() }

func (t *theirs) limitedFor(rank int) error { return t.client.LimitedFor(rank) }

func (t *theirs) limitedToRefund(n int64) error { return t.client.LimitedToRefund(n) }

func (t *theirs) reserve(ctx context.Context, class source.Class, n int64) (*remote.Turn, error) {
	return t.client.Reserve(ctx, class, n)
}

func (t *theirs) reserveCall(ctx context.Context, rank int, n int64) (*remote.Turn, error) {
	return t.client.ReserveCall(ctx, rank, n)
}

func (t *theirs) source() string { return t.client.Source() }

func (t *theirs) preferred(now time.Time) bool {
	return now.UnixNano() >= t.lastUntil.Load() && t.client.Ready(t.node.Network()) == nil
}

func (t *theirs) comesLast(rest time.Duration) { t.lastUntil.Store(t.now().Add(rest).UnixNano()) }

// settle shows an authorization and finds out what became of it. left is how many facilitators, this one among them, share the time.
func (t *theirs) settle(ctx context.Context, turn *remote.Turn, s chain.Signed, left int, believe chain.Believe) chain.Settlement {
	// Most of what can not pay ends here, where it was not shown to anybody and may be refused for good.
	if err := insist(ctx, func() error { return t.simulate(ctx, s) }); err != nil {
		return t.refuse(ctx, s, err)
	}
	step := crash.Send
	if slices.Contains(t.treasuries, s.From) {
		step = crash.RefundSend
	}
	asking, cancel := share(ctx, left)
	crash.Before(step)
	said := t.client.Settle(asking, turn, t.node.Network(), s)
	crash.After(step)
	cancel()
	switch said.Kind {
	case remote.Unsent:
		return chain.Settlement{Status: chain.StatusReleased, Why: whyTrouble, Err: said.Err}
	case remote.Paid:
		word := chain.Word{Of: t.client.Name(), Transaction: said.Transaction}
		if t.later && believe != nil && believe(ctx, word) {
			return chain.Settlement{Status: chain.StatusSaid, Transaction: said.Transaction}
		}
		return t.prove(ctx, s, said)
	case remote.Pending:
		return t.prove(ctx, s, said)
	case remote.Declined, remote.Refused, remote.Unclear:
	}
	// Whatever it says, the transfer may be there: by its hand, or by that of somebody who was shown the authorization before.
	if proof, found, err := t.byLog(ctx, s); found {
		return t.await(ctx, s, proof.Transaction)
	} else if err != nil && !errors.Is(err, errNotYet) {
		return unknown(said.Transaction, whyTrouble, errors.Join(said.Err, err))
	}
	if said.Kind == remote.Declined && said.Blame != remote.BlameNone {
		return t.judge(ctx, s, said)
	}
	t.comesLast(troubleRest)
	return unknown(said.Transaction, whyTrouble, said.Err)
}

func (t *theirs) simulate(ctx context.Context, s chain.Signed) error {
	return t.node.Simulate(ctx, common.Address{}, chain.SettleGas, s)
}

// refuse turns what our own node says against an authorization, before anybody is shown it, into its settlement.
func (t *theirs) refuse(ctx context.Context, s chain.Signed, cause error) chain.Settlement {
	err := fmt.Errorf("simulate settlement of %s: %w", s.Nonce, cause)
	revert, reverted := errors.AsType[*chain.Revert](cause)
	if !reverted {
		return chain.Settlement{Status: chain.StatusReleased, Why: whyTrouble, Err: err}
	}
	if paid, decided := t.usedUp(ctx, s, revert, common.Hash{}); decided {
		return paid
	}
	return chain.Settlement{Status: chain.StatusReleased, Why: revert.Code(), PayerFault: blames(ctx, t.node, s, revert), Err: err}
}

// usedUp finds out what used the nonce of an authorization that the asset does not take any more. False: nothing, or something that does
// not pay. The asset looks at the time first, so what has expired may have paid before.
func (t *theirs) usedUp(ctx context.Context, s chain.Signed, revert *chain.Revert, named common.Hash) (chain.Settlement, bool) {
	if revert.Kind != chain.RevertNonceUsed && revert.Kind != chain.RevertExpired {
		return chain.Settlement{}, false
	}
	proof, found, err := t.byLog(ctx, s)
	switch {
	case found:
		return t.await(ctx, s, proof.Transaction), true
	case err == nil:
		return chain.Settlement{}, false
	case errors.Is(err, errNotYet) && revert.Kind == chain.RevertExpired:
		lapsed, failed := neverPaid(ctx, t.node, s)
		if lapsed {
			return chain.Settlement{}, false
		}
		if failed != nil {
			err = failed
		}
	}
	return unknown(named, whyPending, fmt.Errorf("find transfer of nonce %s: %w", s.Nonce, err)), true
}

// share is the time that one of several facilitators may take of what is left.
func share(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	rest := time.Until(deadline)
	limit := rest / time.Duration(max(1, left))
	if left <= 1 && rest > 2*lookTime {
		limit = rest - lookTime
	}
	return context.WithTimeout(ctx, limit)
}

var errNotBorne = errors.New("our node does not see the transfer that the facilitator speaks of")

// prove waits until our node has the transfer deep enough: in the transaction that the facilitator names, or in another one.
func (t *theirs) prove(ctx context.Context, s chain.Signed, said remote.Answer) chain.Settlement {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for look := 1; ; look++ {
		receipts, err := t.node.Receipts(ctx, []common.Hash{said.Transaction})
		elsewhere := look%byLogEvery == 0
		if err == nil {
			proof, v := judge(receipts[0], s.Expect(), t.node.Network().ServeAtDepth)
			switch v {
			case verdictSettled:
				got := settled(proof)
				got.ByUs = true
				return got
			case verdictReverted, verdictUnproved:
				elsewhere = true
			case verdictWait:
			}
			if elsewhere {
				if other, found, _ := t.byLog(ctx, s); found {
					return t.await(ctx, s, other.Transaction)
				}
			}
			if v == verdictReverted || v == verdictUnproved {
				t.comesLast(wordRest)
				return unknown(said.Transaction, whyMismatch, errors.Join(said.Err, t.named(errNotBorne)))
			}
		}
		select {
		case <-ctx.Done():
			t.comesLast(wordRest)
			return unknown(said.Transaction, whyPending, errors.Join(said.Err, t.named(errNotBorne), err))
		case <-again.C:
		}
	}
}

func (t *theirs) named(err error) error {
	return fmt.Errorf("facilitator %s: %w", t.client.Name(), err)
}

// byLog looks for the transfer by the logs of its authorization, whoever sent it. It is errNotYet where the asset has not taken the nonce.
func (t *theirs) byLog(ctx context.Context, s chain.Signed) (proof chain.Proof, found bool, err error) {
	err = chain.OneView(ctx, func(ctx context.Context) error {
		// The state is read before the logs, so a transfer that made it is in them, as long as they reach that block.
		used, block, err := t.node.UsedAt(ctx, s.Asset, s.From, s.Nonce, 1)
		switch {
		case err != nil:
			return err
		case !used:
			return errNotYet
		}
		proof, found, err = t.node.FindSettlementTo(ctx, s.Expect(), block-min(block, lookBack), block)
		return err
	})
	return proof, found, err
}

// await waits until a transfer that is on the chain is deep enough.
func (t *theirs) await(ctx context.Context, s chain.Signed, transaction common.Hash) chain.Settlement {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		proof, depth, found, err := t.node.Locate(ctx, s.Expect(), transaction)
		if err == nil && found && depth >= t.node.Network().ServeAtDepth {
			return settled(proof)
		}
		select {
		case <-ctx.Done():
			return unknown(transaction, whyPending, errors.Join(err, ctx.Err()))
		case <-again.C:
		}
	}
}

// judge holds a no against what the asset says to our own node: the payer is blamed, and invited to sign another payment, only where that
// bears it out.
func (t *theirs) judge(ctx context.Context, s chain.Signed, said remote.Answer) chain.Settlement {
	err := t.simulate(ctx, s)
	revert, reverted := errors.AsType[*chain.Revert](err)
	if maybeWallet(err) && t.undone(ctx, s, said.Transaction) {
		return chain.Settlement{Status: chain.StatusRejected, Transaction: said.Transaction, Why: whyFailed, PayerFault: true,
			Err: errors.Join(said.Err, errUndone, err)}
	}
	if !reverted {
		// The asset would take it, so the next facilitator may have more luck.
		t.comesLast(troubleRest)
		return unknown(said.Transaction, whyTrouble, errors.Join(said.Err, err))
	}
	// Between the look before and this one it may have been used by the very transfer that pays.
	if paid, decided := t.usedUp(ctx, s, revert, said.Transaction); decided {
		return paid
	}
	return chain.Settlement{Status: chain.StatusRejected, Transaction: said.Transaction, Why: revert.Code(),
		PayerFault: blames(ctx, t.node, s, revert), Err: errors.Join(said.Err, revert)}
}

// undone says whether the chain has undone the transaction that a facilitator names with the nonce unused, and the payer is a contract wallet, which can
// be why.
func (t *theirs) undone(ctx context.Context, s chain.Signed, named common.Hash) bool {
	if named == (common.Hash{}) {
		return false
	}
	after, err := afterUndone(ctx, t.node, s, named, func(ctx context.Context) error { return t.simulate(ctx, s) })
	return err == nil && !after.used && maybeWallet(after.simulated) && hasCode(ctx, t.node, s)
}
