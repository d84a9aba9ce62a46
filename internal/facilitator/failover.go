package facilitator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/facilitator/remote"
	"market/internal/source"
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
	links      []link
	treasuries []common.Address
	now        func() time.Time

	mu     sync.Mutex
	proved map[link]time.Time // when that began by which it was seen last that a link settles; a link that has said no since is not in it
}

// A link settles, and says whether it is worth trying first.
type link interface {
	// settle shows an authorization in a turn that was reserved before; left is how many links, this one among them, share the time.
	settle(ctx context.Context, turn *remote.Turn, s chain.Signed, left int, believe chain.Believe) chain.Settlement
	// reserve sets units aside; the turn is nil where nothing is counted.
	reserve(ctx context.Context, class source.Class, n int64) (*remote.Turn, error)
	// reserveCall sets those of a new call aside, which gives way to calls of a higher rank when little is left.
	reserveCall(ctx context.Context, rank int, n int64) (*remote.Turn, error)
	// look asks whether it would settle if it took work, and for how long its answer holds by its own word. A definite no is a *readiness.Denied.
	look(ctx context.Context) (validFor time.Duration, err error)
	// limited says from memory whether it takes work.
	limited() error
	// limitedFor is limited for new calls of one rank.
	limitedFor(rank int) error
	// limitedToRefund is limited for a refund that wants n units of it.
	limitedToRefund(n int64) error
	// preferred says, without asking anybody, whether it is expected to work.
	preferred(now time.Time) bool
	// source is the name under which it is counted; empty where it is not.
	source() string
}

// NewFailover returns a settler through these facilitators, which are tried in their order.
func NewFailover(node *chain.Node, treasuries []common.Address, links []Link, now func() time.Time) *Failover {
	f := &Failover{treasuries: treasuries, now: now, proved: map[link]time.Time{}}
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
	reserved := taken(ctx)
	began, order, class := f.now(), f.order(), f.classOf(s)
	if reserved != nil {
		order = first(reserved.of, order)
		if reserved.class != 0 {
			class = reserved.class
		}
	}
	if len(order) == 1 {
		got, passed := f.settleBy(ctx, order[0], reserved, class, s, 1, believe)
		if passed != nil {
			got = chain.Settlement{Status: chain.StatusReleased, Why: whyTrouble, Err: passed}
		}
		if got.ByUs {
			f.settled(order[0], began)
		}
		return f.orLimited(s, got)
	}
	var (
		shown bool
		sent  common.Hash
		errs  []error
	)
	for i, l := range order {
		got, passed := f.settleBy(ctx, l, reserved, class, s, len(order)-i, believe)
		if passed != nil {
			errs = append(errs, passed)
			continue
		}
		switch {
		case got.Status == chain.StatusSettled:
			if got.ByUs {
				f.settled(l, began)
			}
			return got
		case got.Status == chain.StatusSaid:
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
		return f.orLimited(s, chain.Settlement{Status: chain.StatusReleased, Why: whyTrouble, Err: errors.Join(errs...)})
	}
	why := whyTrouble
	if sent != (common.Hash{}) {
		why = whyPending
	}
	return f.orLimited(s, unknown(sent, why, errors.Join(errs...)))
}

// settleBy settles by one facilitator, in the turn that was reserved with it, or in one of its own, of a class. passed is why it was not asked.
func (f *Failover) settleBy(ctx context.Context, l link, reserved *Reservation, class source.Class, s chain.Signed, left int, believe chain.Believe,
) (got chain.Settlement, passed error) {
	if reserved != nil && reserved.of == l {
		return l.settle(ctx, reserved.turn, s, left, believe), nil
	}
	turn, err := l.reserve(ctx, class, 1)
	if err != nil {
		return chain.Settlement{}, untyped(err)
	}
	if turn != nil {
		defer turn.End(0)
	}
	return l.settle(ctx, turn, s, left, believe), nil
}

// classOf is what it is to settle an authorization: it gives money back where one of our treasuries signed it.
func (f *Failover) classOf(s chain.Signed) source.Class {
	if slices.Contains(f.treasuries, s.From) {
		return source.Refund
	}
	return source.Settlement
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
func (o *ours) settle(ctx context.Context, _ *remote.Turn, s chain.Signed, left int, _ chain.Believe) chain.Settlement {
	if left > 1 {
		limited, cancel := share(ctx, left)
		defer cancel()
		ctx = limited
	}
	return o.engine.Settle(ctx, s)
}

func (o *ours) look(ctx context.Context) (time.Duration, error) {
	err := o.engine.Ready(ctx)
	if err == nil || !errors.Is(context.Cause(ctx), errEnough) {
		o.held.Store(err != nil)
	}
	return 0, err
}

func (o *ours) preferred(time.Time) bool { return !o.held.Load() }

func (o *ours) reserve(context.Context, source.Class, int64) (*remote.Turn, error) { return nil, nil }

func (o *ours) reserveCall(context.Context, int, int64) (*remote.Turn, error) { return nil, nil }

func (o *ours) limited() error { return nil }

func (o *ours) limitedFor(int) error { return nil }

func (o *ours) limitedToRefund(int64) error { return nil }

func (o *ours) source() string { return "" }
