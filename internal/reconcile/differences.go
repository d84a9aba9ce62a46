package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Difference is a suspicion that has lasted.
type Difference struct {
	ID int64
	Key
	Kind     Kind
	Subject  string
	Text     string
	Since    time.Time
	ClosedAt time.Time // since when nobody new is asked to pay on its network; zero: it closes nothing, or not yet
	EndedAt  time.Time // zero: it lasts
}

// A Change is a difference that was named, that closed its network, or that is over.
type Change struct {
	Difference
	Over bool
}

const (
	suspectSQL = `
WITH seen AS (
	SELECT kind, subject, text FROM unnest($4::text[], $5::text[], $6::text[]) AS s(kind, subject, text)
), gone AS (
	DELETE FROM suspicions x WHERE network = $1 AND asset = $2 AND treasury = $3
	   AND NOT EXISTS (SELECT 1 FROM seen WHERE seen.kind = x.kind AND seen.subject = x.subject)
)
INSERT INTO suspicions AS x (network, asset, treasury, kind, subject, text)
SELECT $1, $2, $3, kind, subject, text FROM seen
ON CONFLICT (network, asset, treasury, kind, subject) DO UPDATE SET looks = x.looks + 1, text = excluded.text
RETURNING kind, subject, text, since, market_now() - since, looks`

	diffColumnsSQL = `id, network, asset, treasury, kind, subject, text, since, closed_at, ended_at`

	// An inflow is over when a call has claimed it, and everything else when it is not seen any more.
	endSQL = `
UPDATE differences d SET ended_at = market_now()
 WHERE network = $1 AND asset = $2 AND treasury = $3 AND ended_at IS NULL AND CASE kind
	WHEN 'inflow' THEN EXISTS (
		SELECT 1 FROM wallet_transfers t
		 WHERE t.network = d.network AND t.asset = d.asset AND t.treasury = d.treasury AND t.partner_kind = 'call'
		   AND t.transaction = decode(substr(split_part(d.subject, '/', 1), 3), 'hex') AND t.log_index = split_part(d.subject, '/', 2)::int OFFSET 0)
	ELSE NOT EXISTS (SELECT 1 FROM unnest($4::text[], $5::text[]) AS s(kind, subject) WHERE s.kind = d.kind AND s.subject = d.subject) END
RETURNING ` + diffColumnsSQL

	nameSQL = `
INSERT INTO differences (network, asset, treasury, kind, subject, text, since)
SELECT $1, $2, $3, kind, subject, text, since FROM unnest($4::text[], $5::text[], $6::text[], $7::timestamptz[]) AS s(kind, subject, text, since)
ON CONFLICT (network, asset, treasury, kind, subject) WHERE ended_at IS NULL DO NOTHING
RETURNING ` + diffColumnsSQL

	closeSQL = `
UPDATE differences d SET closed_at = market_now()
 WHERE network = $1 AND asset = $2 AND treasury = $3 AND ended_at IS NULL AND closed_at IS NULL
   AND EXISTS (SELECT 1 FROM unnest($4::text[], $5::text[]) AS s(kind, subject) WHERE s.kind = d.kind AND s.subject = d.subject)
RETURNING ` + diffColumnsSQL

	reorganisedSQL = `
INSERT INTO differences (network, asset, treasury, kind, subject, text, since, ended_at)
VALUES ($1, $2, $3, 'reorganised', '', $4, market_now(), market_now())
RETURNING ` + diffColumnsSQL

	listDifferencesSQL = `SELECT ` + diffColumnsSQL + ` FROM differences WHERE ended_at IS NULL
 ORDER BY kind = 'inflow', named_at DESC, id DESC LIMIT $1` // what anybody can send hides nothing

	// What is seen only now, the oldest first.
	listSuspicionsSQL = `
SELECT 0::bigint, network, asset, treasury, kind, subject, text, since, NULL::timestamptz, NULL::timestamptz FROM suspicions x
 WHERE NOT EXISTS (
	SELECT 1 FROM differences d
	 WHERE d.network = x.network AND d.asset = x.asset AND d.treasury = x.treasury AND d.kind = x.kind AND d.subject = x.subject AND d.ended_at IS NULL)
 ORDER BY since, network, asset, treasury, kind, subject LIMIT $1`

	comparedSQL = `UPDATE wallets SET compared_at = market_now() WHERE network = $1 AND asset = $2 AND treasury = $3`
)

func scanDifference(row pgx.CollectableRow) (d Difference, err error) {
	var (
		asset, treasury []byte
		closed, ended   *time.Time
	)
	err = row.Scan(&d.ID, &d.Network, &asset, &treasury, &d.Kind, &d.Subject, &d.Text, &d.Since, &closed, &ended)
	d.Asset, d.Treasury, d.Since = common.BytesToAddress(asset), common.BytesToAddress(treasury), d.Since.UTC()
	if closed != nil {
		d.ClosedAt = closed.UTC()
	}
	if ended != nil {
		d.EndedAt = ended.UTC()
	}
	return d, err
}

func differences(ctx context.Context, db postgres.DB, sql string, args ...any) ([]Difference, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanDifference)
}

// Open returns the differences that last, the newest first, at most limit of them.
func (Store) Open(ctx context.Context, db postgres.DB, limit int) ([]Difference, error) {
	all, err := differences(ctx, db, listDifferencesSQL, limit)
	if err != nil {
		return nil, fmt.Errorf("list differences: %w", err)
	}
	return all, nil
}

// Suspected returns what was seen at the last look and is no difference yet, the oldest first, at most limit of it. None of it has a number.
func (Store) Suspected(ctx context.Context, db postgres.DB, limit int) ([]Difference, error) {
	all, err := differences(ctx, db, listSuspicionsSQL, limit)
	if err != nil {
		return nil, fmt.Errorf("list suspicions: %w", err)
	}
	return all, nil
}

// conclude keeps what was found of a wallet, and makes of it what has lasted for long enough. It returns what is new, and which inflows are to be booked.
func conclude(ctx context.Context, tx pgx.Tx, k Key, found []Suspicion) (changes []Change, book []Suspicion, err error) {
	var all, named, closing columns
	for _, s := range found {
		all.add(s, time.Time{})
	}
	rows, err := tx.Query(ctx, suspectSQL, k.Network, k.Asset[:], k.Treasury[:], all.kinds, all.subjects, all.texts)
	if err != nil {
		return nil, nil, err
	}
	var (
		s      Suspicion
		since  time.Time
		lasted time.Duration
		looks  int
	)
	if _, err := pgx.ForEachRow(rows, []any{&s.Kind, &s.Subject, &s.Text, &since, &lasted, &looks}, func() error {
		v := Judge(s.Kind, lasted, looks)
		if v.Book {
			book = append(book, s)
		}
		if v.Name {
			named.add(s, since)
		}
		if v.Close {
			closing.add(s, since)
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	step := func(over bool, sql string, args ...any) error {
		moved, err := differences(ctx, tx, sql, append([]any{k.Network, k.Asset[:], k.Treasury[:]}, args...)...)
		for _, d := range moved {
			changes = append(changes, Change{Difference: d, Over: over})
		}
		return err
	}
	if err := step(true, endSQL, all.kinds, all.subjects); err != nil {
		return nil, nil, err
	}
	if len(named.kinds) > 0 {
		if err := step(false, nameSQL, named.kinds, named.subjects, named.texts, named.since); err != nil {
			return nil, nil, err
		}
	}
	if len(closing.kinds) > 0 {
		if err := step(false, closeSQL, closing.kinds, closing.subjects); err != nil {
			return nil, nil, err
		}
	}
	_, err = tx.Exec(ctx, comparedSQL, k.Network, k.Asset[:], k.Treasury[:])
	return changes, book, err
}

// columns are suspicions as a statement takes them.
type columns struct {
	kinds, subjects, texts []string
	since                  []time.Time
}

func (c *columns) add(s Suspicion, since time.Time) {
	c.kinds, c.subjects, c.texts, c.since = append(c.kinds, string(s.Kind)), append(c.subjects, s.Subject), append(c.texts, s.Text), append(c.since, since)
}

// A Count is how much differs on a network now.
type Count struct {
	Network string
	Differ  int // without what strangers sent
	Inflows int // what strangers sent
	Closed  bool
}

const countsSQL = `
SELECT w.network, count(*) FILTER (WHERE d.kind <> 'inflow'), count(*) FILTER (WHERE d.kind = 'inflow'), count(d.closed_at) > 0
  FROM (SELECT DISTINCT network FROM wallets) w LEFT JOIN differences d ON d.network = w.network AND d.ended_at IS NULL
 GROUP BY w.network ORDER BY w.network`

// Counts returns it of every network on which we have a wallet.
func (Store) Counts(ctx context.Context, db postgres.DB) ([]Count, error) {
	rows, err := db.Query(ctx, countsSQL)
	if err != nil {
		return nil, fmt.Errorf("count differences: %w", err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Count])
	if err != nil {
		return nil, fmt.Errorf("count differences: %w", err)
	}
	return counts, nil
}
