package facilitator

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"market/internal/chain"
	"market/internal/facilitator/remote"
	"market/internal/source"
)

// A Reservation is units that were set aside with one facilitator of a network before anything is shown to anybody. One of nil is none, and stands for our
// own engine too, which counts nothing.
type Reservation struct {
	of    link
	turn  *remote.Turn // nil: nothing is counted
	aside bool         // it is the unit that was set aside with the payment
	keeps int64        // for a refund
	class source.Class // zero: as the authorization says
	used  atomic.Bool  // by a settlement
}

// Limited says from memory why no facilitator takes work now; nil where one does. It is the *source.LimitError of the one that is to be asked first.
func (f *Failover) Limited() error { return f.allLimited(link.limited) }

// LimitedFor is Limited for new calls of one rank: when little is left, those of the lower ranks are sent away first.
func (f *Failover) LimitedFor(rank int) error {
	return f.allLimited(func(l link) error { return l.limitedFor(rank) })
}

// LimitedToRefund is Limited for a refund whose unit was set aside with the source unitOf; empty: it has none. Our own guard stops new payments long before
// it stops refunds.
func (f *Failover) LimitedToRefund(unitOf string) error {
	return f.allLimited(func(l link) error {
		if unitOf != "" && unitOf == l.source() {
			return l.limitedToRefund(0)
		}
		return l.limitedToRefund(1)
	})
}

func (f *Failover) allLimited(of func(link) error) error {
	var earliest *source.LimitError
	for _, l := range f.links {
		limit, out := errors.AsType[*source.LimitError](of(l))
		if !out {
			return nil
		}
		earliest = earlier(earliest, limit)
	}
	if earliest == nil {
		return nil
	}
	return earliest
}

// Counts says whether anything is counted here.
func (f *Failover) Counts() bool {
	return slices.ContainsFunc(f.links, func(l link) bool { return l.source() != "" })
}

// Sources are the names under which the facilitators are counted.
func (f *Failover) Sources() []string {
	var names []string
	for _, l := range f.links {
		if name := l.source(); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ReserveCall sets n units aside for a new call with the first facilitator in order that takes work; our own engine always does. When little is left, calls
// of a higher rank come first. The error is the *source.LimitError of the one that is to be asked first where none does, or the database's.
func (f *Failover) ReserveCall(ctx context.Context, rank int, n int64) (*Reservation, error) {
	return f.reserve(n, "", func(l link, n int64) (*remote.Turn, error) { return l.reserveCall(ctx, rank, n) })
}

// ReserveRefund sets a unit aside for one refund: where the unit that was set aside with unitOf is used, no other is counted.
func (f *Failover) ReserveRefund(ctx context.Context, unitOf string) (*Reservation, error) {
	return f.reserve(1, unitOf, func(l link, n int64) (*remote.Turn, error) { return l.reserve(ctx, source.Refund, n) })
}

// ReservePayout sets a unit aside for one payout, which leaves what refunds want.
func (f *Failover) ReservePayout(ctx context.Context) (*Reservation, error) {
	reserved, err := f.reserve(1, "", func(l link, n int64) (*remote.Turn, error) { return l.reserve(ctx, source.Payout, n) })
	if err != nil {
		return nil, err
	}
	reserved.class = source.Payout
	return reserved, nil
}

func (f *Failover) reserve(n int64, unitOf string, of func(link, int64) (*remote.Turn, error)) (*Reservation, error) {
	var (
		earliest *source.LimitError
		errs     []error
	)
	for _, l := range f.order() {
		aside := unitOf != "" && unitOf == l.source()
		wanted := n
		if aside {
			wanted--
		}
		turn, err := of(l, wanted)
		if err == nil {
			return &Reservation{of: l, turn: turn, aside: aside}, nil
		}
		if limit, out := errors.AsType[*source.LimitError](err); out {
			earliest = earlier(earliest, limit)
			continue
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 && earliest != nil {
		return nil, earliest
	}
	return nil, errors.Join(errs...)
}

func earlier(a, b *source.LimitError) *source.LimitError {
	if a == nil || b.Until.Before(a.Until) {
		return b
	}
	return a
}

// orLimited lets whoever settled know that nobody takes work now, where that is why it did not come to a proof: then it is known until when to wait. Our own
// guard is no reason for a refund that was shown: it had its unit.
func (f *Failover) orLimited(s chain.Signed, got chain.Settlement) chain.Settlement {
	if got.PayerFault || got.Status != chain.StatusReleased && got.Status != chain.StatusUnknown {
		return got
	}
	limited := f.Limited
	if f.classOf(s) == source.Refund {
		limited = func() error { return f.allLimited(func(l link) error { return l.limitedToRefund(0) }) }
	}
	if limit := limited(); limit != nil {
		got.Err = errors.Join(limit, got.Err)
	}
	return got
}

// untyped keeps the text of an error alone: that one facilitator is out must not be taken for all of them being out.
func untyped(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// first puts a link at the head of the others.
func first(of link, order []link) []link {
	return append([]link{of}, slices.DeleteFunc(order, func(l link) bool { return l == of })...)
}

type reservationKey struct{}

// In returns a context in which the next settlement uses the reservation. It goes along in the context because what stands between, such as Checked,
// hands an authorization on and knows nothing of units.
func (r *Reservation) In(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	return context.WithValue(ctx, reservationKey{}, r)
}

// taken is the reservation that goes along, once.
func taken(ctx context.Context) *Reservation {
	r, _ := ctx.Value(reservationKey{}).(*Reservation)
	if r == nil || r.used.Swap(true) {
		return nil
	}
	return r
}

// UsesSetAside says that it is the unit which was set aside with the payment.
func (r *Reservation) UsesSetAside() bool { return r != nil && r.aside }

// Shown says that something has left us by it.
func (r *Reservation) Shown() bool { return r != nil && r.turn != nil && r.turn.Shown() }

// SetAside keeps one unit that is left for the refund of what was settled, and names the source that it is kept with: empty where none is kept, because
// nothing is counted, or because another facilitator than the one that was reserved has settled.
func (r *Reservation) SetAside() (unitOf string) {
	if !r.Shown() || r.turn.Left() < 1 {
		return ""
	}
	r.keeps = 1
	return r.of.source()
}

// End gives back what was neither used nor set aside. It may be called again.
func (r *Reservation) End() {
	if r != nil && r.turn != nil {
		r.turn.End(r.keeps)
	}
}
