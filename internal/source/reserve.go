package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// One statement answers "may I spend n" and "is this source worth asking yet", for all replicas together: the row of the day arbitrates the last units, also
// where it is not there yet, and the row of the source who passes an ended window. Who passes writes the next window in the same statement, so that of all
// that come at once one tests the source. It locks the row of the source only then, and that of the day always, for as long as it runs itself: nobody holds
// them over anything else.
//
// The request that tests a source may die on its way, or learn nothing. So the next window is a retry window ($5), also where an answer would have said
// tomorrow, and ends at midnight ($7) where a quota does; the answer sets the rest.
//
// The cap ($4) is a policy over the days before today, so it holds for the day that it was made for ($3): on another one nothing is changed.
//
// Its commit does not wait for the disk. A claim that follows waits, and takes this along, since the log is written in order. So what a crash of the database
// server can lose are reservations of its last fraction of a second that led to nothing, and that a window was passed: one more test.
const reserveSQL = `
WITH clock AS MATERIALIZED (
	SELECT market_now() AS now, (market_now() AT TIME ZONE 'UTC')::date AS today, set_config('synchronous_commit', 'off', true) AS lazily
), fits AS ( -- as far as it can be seen: those that come too late need not wait for a lock to learn it
	SELECT c.now, c.today
	  FROM clock c LEFT JOIN source_days d ON d.source = $1 AND d.day = c.today
	 WHERE c.today = $3::date AND coalesce(d.used, 0) + $2::bigint <= $4::bigint
), tested AS (
	UPDATE source_state s
	   SET exhausted_at = f.now,
	       retry_at = least(f.now + CASE s.why WHEN 'denied' THEN $6::interval ELSE $5::interval END,
	                        CASE WHEN $7::boolean THEN (f.today + 1)::timestamp AT TIME ZONE 'UTC' END)
	  FROM fits f
	 WHERE s.source = $1 AND s.exhausted_at IS NOT NULL AND s.retry_at <= f.now AND coalesce(s.next_request_at <= f.now, true)
	RETURNING s.retry_at
), usable AS (
	SELECT f.now, f.today, (SELECT t.retry_at FROM tested t) AS next_test, s.out_since, s.refused_at, s.guard_reached_at, coalesce(s.guard_cap, 0) AS guard_cap
	  FROM fits f LEFT JOIN source_state s ON s.source = $1
	 WHERE coalesce(s.next_request_at <= f.now, true) AND (s.exhausted_at IS NULL OR EXISTS (SELECT FROM tested))
), spent AS (
	INSERT INTO source_days AS d (source, day, used)
	SELECT $1, u.today, $2::bigint FROM usable u
	ON CONFLICT (source, day) DO UPDATE SET used = d.used + excluded.used WHERE d.used + excluded.used <= $4::bigint
	RETURNING d.used
)
SELECT u.now, s.used, u.next_test, u.out_since, u.refused_at, u.guard_reached_at, u.guard_cap FROM usable u CROSS JOIN spent s`

// tries bounds how often a reservation begins anew: because the day has changed, because what waits has to be counted, or because it lost a race.
const tries = 5

// tellEvery is how often a process tries to tell that our guard was reached, until somebody did.
const tellEvery = time.Second

// Reserve sets n units aside, or says with a *LimitError until when it may not. n may be 0: whether the source is worth asking. It may be the test of a source
// that is out, which is passed on by the grant: whoever gets one asks the source and reports.
func (m *Meter) Reserve(ctx context.Context, class Class, n int64) (*Grant, error) {
	return m.reserveFor(ctx, m.use(class), n)
}

// A use is what units are for.
type use struct {
	class Class
	rank  int // of a new settlement among its like
}

// use is work of a class, and of the highest rank.
func (m *Meter) use(class Class) use { return use{class, m.ranks - 1} }

// ceiling is up to where it may use a cap.
func (u use) ceiling(ranks int, limit int64, w Waiting) int64 {
	if u.class == Settlement {
		return CeilingOf(u.rank, ranks, limit, w)
	}
	return Ceiling(u.class, limit, w)
}

func (m *Meter) reserveFor(ctx context.Context, what use, n int64) (*Grant, error) {
	g, err := m.reserve(ctx, what, n)
	limit, denied := errors.AsType[*LimitError](err)
	if denied {
		m.deny(ctx, limit, what, n)
	}
	m.observe(what.class, err)
	return g, err
}

func (m *Meter) observe(class Class, err error) {
	o := m.r.hooks.Observer
	if o == nil {
		return
	}
	if limit, denied := errors.AsType[*LimitError](err); denied {
		o.Reserved(m.of.Name, class, limit.Why)
	} else if err == nil {
		o.Reserved(m.of.Name, class, 0)
	}
}

// reserve is Reserve without what is done about a denial.
func (m *Meter) reserve(ctx context.Context, what use, n int64) (*Grant, error) {
	n = max(0, n)
	seen, err := m.facts(ctx)
	if err != nil {
		return nil, err
	}
	var waiting *Waiting // as long as it is nil, the last tenth of the cap is kept for what may wait
	for range tries {
		day := seen.day
		limit := Cap(m.of.Guard, seen.busiest)
		if waiting == nil && what.class != Refund && seen.used+n > limit-tenth(limit) && seen.used+n <= limit {
			waiting = m.waiting(ctx)
		}
		ceiling := limit
		switch {
		case waiting != nil:
			ceiling = what.ceiling(m.ranks, limit, *waiting)
		case what.class != Refund:
			ceiling = limit - tenth(limit)
		}
		g, err := m.spend(ctx, seen, n, ceiling)
		if err != nil || g != nil {
			return g, err
		}
		if seen, err = m.read(ctx); err != nil {
			return nil, err
		}
		if !seen.day.Equal(day) {
			continue // it was made for yesterday
		}
		full := seen.used+n > ceiling && (waiting != nil || what.class == Refund || seen.used+n > limit)
		if e := m.obstacle(seen, seen.at, full); e != nil {
			return nil, e
		}
	}
	// Each time somebody else was faster, and nothing stands against it: so it is tried again in a moment.
	return nil, m.limit(Paced, seen.at.Add(paceMin), seen.at)
}

// facts returns what the cap of today rests on: read once a day, because the days before do not change any more.
func (m *Meter) facts(ctx context.Context) (reading, error) {
	if seen, _ := m.look(); !seen.at.IsZero() {
		return seen, nil
	}
	return m.read(ctx)
}

// waiting counts what is owed already. Where that is not known, all of the last tenth is kept for it.
func (m *Meter) waiting(ctx context.Context) *Waiting {
	ask := m.r.hooks.Waiting
	if ask == nil {
		return &Waiting{}
	}
	w, err := ask(ctx, m.of.Name)
	if err != nil {
		m.r.trouble(fmt.Errorf("count what waits for source %s: %w", m.of.Name, err))
		return &Waiting{Refunds: math.MaxInt64}
	}
	return &w
}

// spend runs the statement; no grant where it changed nothing.
func (m *Meter) spend(ctx context.Context, seen reading, n, ceiling int64) (*Grant, error) {
	var (
		at                                 time.Time
		used, guardCap                     int64
		nextTest, outSince, refused, guard *time.Time
	)
	began := m.r.now()
	row := m.r.db.QueryRow(ctx, reserveSQL, m.of.Name, n, seen.day, ceiling, m.of.RetryWindow, deniedWindow, m.of.RunsOut == Daily)
	err := row.Scan(&at, &used, &nextTest, &outSince, &refused, &guard, &guardCap)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reserve of source %s: %w", m.of.Name, err)
	}
	g := &Grant{m: m, day: seen.day, at: at.UTC(), began: began, left: n, tests: nextTest != nil}
	now := reading{day: seen.day, busiest: seen.busiest, state: state{outSince: orZero(outSince), refusedAt: orZero(refused), guardReachedAt: orZero(guard), guardCap: guardCap}}
	g.recovers = !g.tests && now.recovering(g.at)
	m.used(g, used, orZero(nextTest))
	if !now.guardReachedAt.IsZero() && !now.guards(now.day, Cap(m.of.Guard, now.busiest)) {
		m.lift(ctx)
	}
	return g, nil
}

// used keeps in memory what a reservation has shown: how much is used, and that the source is being tested. Nothing else of it: what an answer said in the
// meantime is newer.
func (m *Meter) used(g *Grant, used int64, nextTest time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen.day.Equal(g.day) {
		m.seen.used = used
	}
	if g.tests && g.at.After(m.seen.at) {
		m.seen.at, m.seen.exhaustedAt, m.seen.retryAt = g.at, g.at, nextTest
	}
}

// deny counts what was not let through, and tells of our own guard.
func (m *Meter) deny(ctx context.Context, limit *LimitError, what use, n int64) {
	seen, at := m.look()
	if limit.Why == Guarded {
		m.meet(what.rank, seen.day)
	}
	m.collect(dayOf(at), sum{denied: n})
	if limit.Why == Guarded && !seen.guards(seen.day, Cap(m.of.Guard, seen.busiest)) && m.mayTell() {
		m.stop(ctx)
	}
}

// mayTell keeps a loop that meets our guard, where nobody can be told of it, from trying to with each request.
func (m *Meter) mayTell() bool {
	now := m.r.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.told.IsZero() && now.Sub(m.told) < tellEvery {
		return false
	}
	m.told = now
	return true
}
