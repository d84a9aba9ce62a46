package facilitator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/facilitator/remote"
)

// A Link is one facilitator of a network: our own engine, or somebody else's.
type Link struct {
	Engine *Engine
	Remote *remote.Client
	Later  bool // its word that it has settled may be offered to whoever asks, before there is a proof
}

// A Failover settles on one network through several facilitators in order. What one of them could not be shown, or left unclear, goes on
// to the next: the asset takes an authorization once, so it does not matter how many send it. Once one of them that is not ours has seen
// an authorization it is never released, because anybody who saw it can put it on the chain.
type Failover struct {
	links []link
	now   func() time.Time
}

// A link settles, and says whether it is worth trying first.
type link interface {
	settle(ctx context.Context, s chain.Signed, left int, believe chain.Believe) chain.Settlement
	ready(ctx context.Context) error
	// preferred says, without asking anybody, whether it is expected to work.
	preferred(now time.Time) bool
}

// NewFailover returns a settler through these facilitators, which are tried in their order.
func NewFailover(node *chain.Node, treasuries []common.Address, links []Link, now func() time.Time) *Failover {
	f := &Failover{now: now}
	for _, l := range links {
		if l.Engine != nil {
			f.links = append(f.links, &ours{engine: l.Engine})
			continue
		}
		f.links = append(f.links, &theirs{client: l.Remote, node: node, treasuries: treasuries, later: l.Later, now: now})
	}
	return f
}

// Believable says whether the word of one of them may be gone on with.
func (f *Failover) Believable() bool {
	return slices.ContainsFunc(f.links, func(l link) bool { t, others := l.(*theirs); return others && t.later })
}

// Ready says why nothing can be settled now; nil where one facilitator can. It looks at all of them, because the order of the next
// settlements rests on what each of them said last.
func (f *Failover) Ready(ctx context.Context) error {
	var errs []error
	for _, l := range f.links {
		if err := l.ready(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) < len(f.links) {
		return nil
	}
	return errors.Join(errs...)
}

// Settle returns settled only with a proof of our own node.
func (f *Failover) Settle(ctx context.Context, s chain.Signed) chain.Settlement {
	return f.settle(ctx, s, nil)
}

// SettleOnWord is Settle for who may go on with the word of a facilitator whose Link says so: believe is asked for each word that one gives, and
// where it says yes the settlement is chain.StatusSaid. What is not believed has to be proved, as in Settle.
func (f *Failover) SettleOnWord(ctx context.Context, s chain.Signed, believe chain.Believe) chain.Settlement {
	return f.settle(ctx, s, believe)
}

func (f *Failover) settle(ctx context.Context, s chain.Signed, believe chain.Believe) chain.Settlement {
	var (
		shown bool
		sent  common.Hash
		errs  []error
	)
	order := f.order()
	if len(order) == 1 {
		return order[0].settle(ctx, s, 1, believe)
	}
	for i, l := range order {
		got := l.settle(ctx, s, len(order)-i, believe)
		switch {
		case got.Status == chain.StatusSettled, got.Status == chain.StatusSaid:
			return got
		case got.Status == chain.StatusReleased && got.PayerFault:
			if shown {
				got.Status, got.Transaction = chain.StatusRejected, sent
			}
			return got
		case got.Status == chain.StatusRejected:
			return got
		}
		errs = append(errs, got.Err)
		shown = shown || got.Status != chain.StatusReleased
		if got.Transaction != (common.Hash{}) {
			sent = got.Transaction
		}
		if ctx.Err() != nil {
			break
		}
	}
	if !shown {
		return chain.Settlement{Status: chain.StatusReleased, Why: whyTrouble, Err: errors.Join(errs...)}
	}
	why := whyTrouble
	if sent != (common.Hash{}) {
		why = whyPending
	}
	return unknown(sent, why, errors.Join(errs...))
}

// order puts those first that are expected to work. Within both groups the order of the configuration stands.
func (f *Failover) order() []link {
	now := f.now()
	return slices.SortedStableFunc(slices.Values(f.links), func(a, b link) int { return cmp.Compare(rank(a, now), rank(b, now)) })
}

func rank(l link, now time.Time) int {
	if l.preferred(now) {
		return 0
	}
	return 1
}

// ours is our engine as a link.
type ours struct {
	engine *Engine
	held   atomic.Bool // the engine was not ready when it was asked last
}

// settle waits for our own transaction. It can be stuck behind an older one of ours, which another sender's is not, so the others get their
// share of the time.
func (o *ours) settle(ctx context.Context, s chain.Signed, left int, _ chain.Believe) chain.Settlement {
	if left > 1 {
		limited, cancel := share(ctx, left)
		defer cancel()
		ctx = limited
	}
	return o.engine.Settle(ctx, s)
}

func (o *ours) ready(ctx context.Context) error {
	err := o.engine.Ready(ctx)
	o.held.Store(err != nil)
	return err
}

func (o *ours) preferred(time.Time) bool { return !o.held.Load() }
