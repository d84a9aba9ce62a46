package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Grant is units that were set aside, and the right to ask their source.
type Grant struct {
	m        *Meter
	day      time.Time // whose units they are
	at       time.Time // market time of the reservation; zero: the database was not asked
	began    time.Time // by this process's own clock
	tests    bool
	recovers bool

	mu   sync.Mutex
	left int64 // units that may still be given back
}

// Tests says that this request is the one of its window that tests a source which is out.
func (g *Grant) Tests() bool { return g.tests }

// Source is the name of whose units these are.
func (g *Grant) Source() string { return g.m.of.Name }

// A process writes a success once in a while: it is for people.
const (
	touchEvery = 15 * time.Second
	touchSQL   = `
INSERT INTO source_state AS s (source, last_success_at) VALUES ($1, market_now())
ON CONFLICT (source) DO UPDATE SET last_success_at = excluded.last_success_at
 WHERE coalesce(s.last_success_at < excluded.last_success_at - interval '5 seconds', true)`
)

const refusedSQL = `
INSERT INTO source_days AS d (source, day, exhausted_at) VALUES ($1, $2, $3)
ON CONFLICT (source, day) DO UPDATE SET exhausted_at = coalesce(d.exhausted_at, excluded.exhausted_at)`

// Report says what came of the request. It never fails its caller: what goes wrong with it is told to Hooks.OnError. A success costs no statement as long
// as nothing is to be ended by it.
func (g *Grant) Report(ctx context.Context, v Verdict) {
	m := g.m
	switch v.Kind {
	case Troubled:
		return
	case Worked:
		if !g.tests && !g.recovers {
			m.touch(ctx)
			return
		}
	case Refused, Rejected, Slowed:
	default:
		m.r.trouble(fmt.Errorf("source %s: no verdict", m.of.Name))
		return
	}
	// Many are refused, or asked to wait, together: who sees that the first one has said it all writes nothing. What is kept in memory may be old, but what
	// is older than that is old as well.
	if seen, at := m.look(); !g.tests {
		if _, did := seen.learn(m.of, v, g.reserved(at), at); !did.written {
			return
		}
	}
	m.change(ctx, func(ctx context.Context, tx pgx.Tx, s *reading) error { return g.learn(ctx, tx, s, v) })
}

func (g *Grant) learn(ctx context.Context, tx pgx.Tx, s *reading, v Verdict) error {
	m := g.m
	marked := !s.refusedAt.IsZero() && !dayOf(s.refusedAt).Before(s.day) // today's row says already that they refused
	next, did := s.state.learn(m.of, v, g.reserved(s.at), s.at)
	if !did.written {
		return nil
	}
	// A refused test tells again: whoever was told keeps one notice of it, and one that was given up unsent, or ended by hand, is to be made anew.
	if did.out || did.refused && g.tests {
		told := m.out(ctx, tx, Out{Why: next.why, Since: next.outSince, Until: next.retryAt, Said: next.said})
		if did.out && !told {
			next.outSince = time.Time{}
		}
	}
	if did.recovered && !m.back(ctx, tx, did.was) {
		next.outSince, next.why = s.outSince, did.was
	}
	if err := next.keep(ctx, tx, m.of.Name); err != nil {
		return err
	}
	if did.cleared {
		m.resume(ctx, tx)
	}
	s.state = next
	if !did.refused || marked {
		return nil
	}
	_, err := tx.Exec(ctx, refusedSQL, m.of.Name, s.day, s.at) // the last statement: all reservations change this row
	return err
}

// reserved is market time at the reservation, seen from now.
func (g *Grant) reserved(now time.Time) time.Time {
	if !g.at.IsZero() {
		return g.at
	}
	return now.Add(-g.m.r.now().Sub(g.began))
}

// touch writes a success.
func (m *Meter) touch(ctx context.Context) {
	now := m.r.now()
	m.mu.Lock()
	due := m.touched.IsZero() || now.Sub(m.touched) >= touchEvery
	if due {
		m.touched = now
	}
	m.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTime)
	defer cancel()
	if _, err := m.r.db.Exec(ctx, touchSQL, m.of.Name); err != nil {
		m.r.trouble(fmt.Errorf("source %s: %w", m.of.Name, err))
	}
}

// GiveBack returns units that were not used. They are collected, and written once a second; a crash loses them, so that the day counts a little more than
// was used.
func (g *Grant) GiveBack(n int64) {
	g.mu.Lock()
	n = max(0, min(n, g.left))
	g.left -= n
	g.mu.Unlock()
	if n > 0 {
		g.m.collect(g.day, sum{back: n})
	}
}
