package source

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// busiestDays is how many days the cap follows.
const busiestDays = 7

// A reading is a source at one moment: how it stands, and what today and the days before say.
type reading struct {
	state
	at         time.Time // when it was read
	day        time.Time // today
	used       int64     // today
	denied     int64
	busiest    int64 // units of the busiest of the latest days before today on which the source did not refuse us; 0: there is none
	busiestDay time.Time
}

// A day on which the source refused us says nothing about normal use: with such days a long outage would drop our own cap to the floor. So they are passed
// over, however many they are. A day that reached its cap counts at the cap: else demand that stays could not lift it.
const readSQL = `
SELECT n.source, c.now, c.today, coalesce(d.used, 0), coalesce(d.denied, 0), coalesce(b.units, 0), b.day,
       s.exhausted_at, s.retry_at, coalesce(s.why, ''), coalesce(s.said, ''), s.next_request_at, s.out_since, s.refused_at, s.cleared_at, s.last_success_at,
       s.guard_reached_at, coalesce(s.guard_cap, 0)
  FROM unnest($1::text[]) WITH ORDINALITY n (source, nr)
 CROSS JOIN (SELECT market_now() AS now, (market_now() AT TIME ZONE 'UTC')::date AS today) c
  LEFT JOIN source_days d ON d.source = n.source AND d.day = c.today
  LEFT JOIN source_state s ON s.source = n.source
  LEFT JOIN LATERAL (
	SELECT units, day
	  FROM (SELECT greatest(used, guarded) AS units, day
	          FROM source_days
	         WHERE source = n.source AND day < c.today AND exhausted_at IS NULL AND greatest(used, guarded) > 0
	         ORDER BY day DESC
	         LIMIT $2) latest
	 ORDER BY units DESC, day DESC
	 LIMIT 1) b ON true
 ORDER BY n.nr`

// read returns how sources stand, in the order of their names.
func read(ctx context.Context, db postgres.DB, names []string) ([]reading, error) {
	rows, err := db.Query(ctx, readSQL, names, busiestDays)
	if err != nil {
		return nil, fmt.Errorf("read sources: %w", err)
	}
	all, err := pgx.CollectRows(rows, scanReading)
	if err != nil {
		return nil, fmt.Errorf("read sources: %w", err)
	}
	if len(all) != len(names) {
		return nil, fmt.Errorf("read sources: %d of %d", len(all), len(names))
	}
	return all, nil
}

func scanReading(row pgx.CollectableRow) (g reading, err error) {
	var (
		name, why                                                            string
		busiestDay, exhausted, retry, next, out, refused, cleared, ok, guard *time.Time
	)
	err = row.Scan(&name, &g.at, &g.day, &g.used, &g.denied, &g.busiest, &busiestDay, &exhausted, &retry, &why, &g.said, &next, &out, &refused, &cleared,
		&ok, &guard, &g.guardCap)
	g.why, g.at = whyOf(why), g.at.UTC()
	g.busiestDay, g.exhaustedAt, g.retryAt, g.nextRequestAt, g.outSince = orZero(busiestDay), orZero(exhausted), orZero(retry), orZero(next), orZero(out)
	g.refusedAt, g.clearedAt, g.lastSuccessAt, g.guardReachedAt = orZero(refused), orZero(cleared), orZero(ok), orZero(guard)
	return g, err
}

// Whoever changes how a source stands locks it in a statement of its own: what is read after that, and market time, are newer than whatever the one
// before has written.
const (
	haveSQL = `INSERT INTO source_state (source) VALUES ($1) ON CONFLICT (source) DO NOTHING`
	lockSQL = `SELECT FROM source_state WHERE source = $1 FOR UPDATE`
	keepSQL = `
UPDATE source_state
   SET exhausted_at = $2, retry_at = $3, why = nullif($4, ''), said = nullif($5, ''), next_request_at = $6, out_since = $7, refused_at = $8,
       cleared_at = $9, last_success_at = $10, guard_reached_at = $11, guard_cap = nullif($12, 0)
 WHERE source = $1`
)

// lock makes the transaction the only one that changes how a source stands, and returns it.
func lock(ctx context.Context, tx pgx.Tx, name string) (reading, error) {
	if _, err := tx.Exec(ctx, haveSQL, name); err != nil {
		return reading{}, fmt.Errorf("lock source %s: %w", name, err)
	}
	if _, err := tx.Exec(ctx, lockSQL, name); err != nil {
		return reading{}, fmt.Errorf("lock source %s: %w", name, err)
	}
	got, err := read(ctx, tx, []string{name})
	if err != nil {
		return reading{}, err
	}
	return got[0], nil
}

// keep writes how a source stands now. It was locked before.
func (s state) keep(ctx context.Context, tx pgx.Tx, name string) error {
	var why string
	if s.why != 0 {
		why = s.why.String()
	}
	_, err := tx.Exec(ctx, keepSQL, name, orNull(s.exhaustedAt), orNull(s.retryAt), why, s.said, orNull(s.nextRequestAt), orNull(s.outSince),
		orNull(s.refusedAt), orNull(s.clearedAt), orNull(s.lastSuccessAt), orNull(s.guardReachedAt), s.guardCap)
	if err != nil {
		return fmt.Errorf("keep source %s: %w", name, err)
	}
	return nil
}

func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}
