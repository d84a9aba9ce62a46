package source

import (
	"context"
	"time"
)

// Ranked tells the facilitators how many ranks new settlements have among themselves; without it there is one. The rank of one is from 0, the lowest. Other
// work than a new call is of the highest.
func (r *Registry) Ranked(ranks int) *Registry {
	for _, m := range r.order {
		if m.of.Kind == KindFacilitator {
			m.ranks = max(1, ranks)
		}
	}
	return r
}

// CeilingOf is up to where new settlements of one of several ranks may use a cap. What refunds and payouts leave of the last tenth is shared out in equal
// steps: the lowest rank stops after the first, and the highest may use all. So what comes last is kept for those that come first, whoever asks when.
func CeilingOf(rank, ranks int, limit int64, w Waiting) int64 {
	top := Ceiling(Settlement, limit, w)
	return top - above(max(0, rank), ranks, top-(limit-tenth(limit)))
}

// above is the part of the last tenth that the ranks above one have for themselves: all of it above none, which is -1.
func above(rank, ranks int, left int64) int64 {
	ranks = max(1, ranks)
	higher, all := int64(ranks-1-min(max(-1, rank), ranks-1)), int64(ranks)
	return left/all*higher + left%all*higher/all
}

// room is from where on new settlements of a rank are sent away, once they have met their ceiling: there has to be room for one in the step below. For the
// lowest that is the end of the last tenth, as for all where there is one rank.
func room(rank, ranks int, limit int64) int64 {
	return limit - above(rank-1, ranks, tenth(limit)) - pieceOfWork
}

// ReserveCall is Reserve for a new call, which gives way to those of a higher rank when little of the cap is left.
func (m *Meter) ReserveCall(ctx context.Context, rank int, n int64) (*Grant, error) {
	return m.reserveFor(ctx, use{Settlement, rank}, n)
}

// ReadyFor is Ready for new calls of one rank.
func (m *Meter) ReadyFor(rank int) error {
	seen, at := m.look()
	return m.ready(seen, at, m.closed(rank, seen))
}

// closed says whether new work of a rank is sent away because of our own guard. After its ceiling was met, work is let in again when there is room for it in
// the step below: what little comes back of what was under way would be offered to many who then do not get it. That the lowest one was met all replicas know
// by the latch of the guard, and of the others each knows what it has met itself. Where the ceiling leaves no room for one more, whoever met it, nobody is asked to
// pay for what would be refused. Before the latch is set one has to be refused, because that is when the operator is told.
func (m *Meter) closed(rank int, seen reading) bool {
	limit := Cap(m.of.Guard, seen.busiest)
	switch {
	case !seen.guards(seen.day, limit) || seen.used <= room(rank, m.ranks, limit):
		return false
	case seen.used > CeilingOf(rank, m.ranks, limit, Waiting{})-pieceOfWork:
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return rank <= 0 || m.met[rank].Equal(seen.day)
}

// meet keeps that work of a rank, and so of those below, has met its ceiling today.
func (m *Meter) meet(rank int, day time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.met == nil {
		m.met = map[int]time.Time{}
	}
	for r := 1; r <= rank; r++ {
		m.met[r] = day
	}
}
