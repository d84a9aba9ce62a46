package source

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// changeTime bounds what is written beside a request. It does not end with the request, whose caller may hang up.
const changeTime = 5 * time.Second

// change runs a transaction that changes how the source stands. The row is locked, and kept in memory as it is left. What goes wrong is told, and changes
// nothing of the caller's work.
func (m *Meter) change(ctx context.Context, with func(ctx context.Context, tx pgx.Tx, s *reading) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTime)
	defer cancel()
	var got reading
	err := pgx.BeginFunc(ctx, m.r.db, func(tx pgx.Tx) (err error) {
		if got, err = lock(ctx, tx, m.of.Name); err != nil {
			return err
		}
		return with(ctx, tx, &got)
	})
	if err != nil {
		m.r.trouble(fmt.Errorf("source %s: %w", m.of.Name, err))
		return
	}
	m.note(got)
}

// The statements of a hook end long before changeTime does: a deadline of the context would end the transaction and not only the hook's part of it. A rolled
// back part has its own setting undone.
const (
	hookTimeSQL = `SET LOCAL statement_timeout = '1s'`
	anyTimeSQL  = `SET LOCAL statement_timeout TO DEFAULT`
)

// hook calls one of the hooks in a part of the transaction of its own, and says whether it went well: what was learnt of a source is kept in any case.
func (m *Meter) hook(ctx context.Context, tx pgx.Tx, call func(pgx.Tx) error) bool {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, hookTimeSQL); err != nil {
			return err
		}
		if err := call(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, anyTimeSQL)
		return err
	})
	if err != nil {
		m.r.trouble(fmt.Errorf("tell of source %s: %w", m.of.Name, err))
		return false
	}
	return true
}

func (m *Meter) resume(ctx context.Context, tx pgx.Tx) {
	if resume := m.r.hooks.Resume; resume != nil {
		m.hook(ctx, tx, func(tx pgx.Tx) error { return resume(ctx, tx, m.of) })
	}
}

// out tells that the source is out, or our guard reached. Where that fails nobody was told, and the next occasion tells.
func (m *Meter) out(ctx context.Context, tx pgx.Tx, o Out) bool {
	out := m.r.hooks.Out
	return out == nil || m.hook(ctx, tx, func(tx pgx.Tx) error { return out(ctx, tx, m.of, o) })
}

func (m *Meter) back(ctx context.Context, tx pgx.Tx, was Why) bool {
	back := m.r.hooks.Back
	return back == nil || m.hook(ctx, tx, func(tx pgx.Tx) error { return back(ctx, tx, m.of, was) })
}

const guardedSQL = `
INSERT INTO source_days AS d (source, day, guarded) VALUES ($1, $2, $3)
ON CONFLICT (source, day) DO UPDATE SET guarded = greatest(d.guarded, excluded.guarded)`

// stop writes that our guard was reached. The first to see it today tells: so at most one notice a day and cap.
func (m *Meter) stop(ctx context.Context) {
	m.change(ctx, func(ctx context.Context, tx pgx.Tx, s *reading) error {
		limit := Cap(m.of.Guard, s.busiest)
		if s.guards(s.day, limit) {
			return nil
		}
		o := Out{Why: Guarded, Since: s.at, Until: s.day.AddDate(0, 0, 1), Used: s.used, Cap: limit, Busiest: s.busiest}
		if !m.out(ctx, tx, o) {
			return nil
		}
		s.guardReachedAt, s.guardCap = s.at, limit
		if err := s.keep(ctx, tx, m.of.Name); err != nil {
			return err
		}
		if !usedUp(s.used, limit) {
			return nil // one request asked for more than a day has: the day was not used up
		}
		_, err := tx.Exec(ctx, guardedSQL, m.of.Name, s.day, limit) // the last statement: all reservations change this row
		return err
	})
}

// lift writes that units are let through again, on another day or under a higher cap.
func (m *Meter) lift(ctx context.Context) {
	m.change(ctx, func(ctx context.Context, tx pgx.Tx, s *reading) error {
		if s.guardReachedAt.IsZero() || s.guards(s.day, Cap(m.of.Guard, s.busiest)) || !m.back(ctx, tx, Guarded) {
			return nil
		}
		s.guardReachedAt, s.guardCap = time.Time{}, 0
		if err := s.keep(ctx, tx, m.of.Name); err != nil {
			return err
		}
		m.resume(ctx, tx)
		return nil
	})
}
