package letter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// Store keeps letters. Every method takes the caller's db, so that a letter shares the transaction of what it tells of.
type Store struct{}

// lease is how long a letter that is being sent is left alone: longer than any job that sends may take.
const lease = 2 * time.Minute

const writeSQL = `
WITH written AS (
	INSERT INTO provider_notices (id, service_id, kind, facts) VALUES ($1, $2, $3, $4) RETURNING id, service_id
)
INSERT INTO provider_deliveries (notice_id, service_id, channel)
SELECT written.id, written.service_id, named.channel FROM written CROSS JOIN unnest($5::text[]) AS named (channel)`

// Write keeps a letter, to be sent by these channels; without any it can be read all the same. Its id and its time are given here. The caller's
// transaction holds what it tells of.
func (Store) Write(ctx context.Context, tx pgx.Tx, l Letter, by []Channel) error {
	if l.Kind == "" {
		return fmt.Errorf("write letter to service %s: of no kind", l.Service)
	}
	facts, err := json.Marshal(l.Facts)
	if err != nil {
		return fmt.Errorf("write letter %s to service %s: %w", l.Kind, l.Service, err)
	}
	if by == nil {
		by = []Channel{}
	}
	if _, err := tx.Exec(ctx, writeSQL, uuid.Must(uuid.NewV7()), l.Service, l.Kind, facts, by); err != nil {
		return fmt.Errorf("write letter %s to service %s: %w", l.Kind, l.Service, err)
	}
	return nil
}

// A Box is where the letters of one service go by one channel.
type Box struct {
	Service uuid.UUID `json:"service"`
	Channel Channel   `json:"channel"`
}

const dueSQL = `
SELECT service_id, channel FROM provider_deliveries
 WHERE sent_at IS NULL AND given_up_at IS NULL AND next_at <= market_now()
 GROUP BY service_id, channel ORDER BY min(next_at) LIMIT $1`

// Due returns the boxes for which there is something to be sent now, those that have waited longest first, at most limit.
func (Store) Due(ctx context.Context, db postgres.DB, limit int) ([]Box, error) {
	rows, err := db.Query(ctx, dueSQL, limit)
	if err != nil {
		return nil, fmt.Errorf("look for due letters: %w", err)
	}
	boxes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Box])
	if err != nil {
		return nil, fmt.Errorf("look for due letters: %w", err)
	}
	return boxes, nil
}

// A claimed letter is ours to send for as long as the lease lasts.
type claimed struct {
	Letter
	box      Box
	attempts int // with this one
	before   int // of them, those before it was last sent again by hand
}

// One statement: of two that send for one box at once, each gets another letter or none. The attempt is counted before it is made, so that
// one which kills the program is counted too.
const claimSQL = `
WITH due AS (
	SELECT d.notice_id
	  FROM provider_deliveries d JOIN provider_notices n ON n.id = d.notice_id
	 WHERE d.service_id = $1 AND d.channel = $2 AND d.sent_at IS NULL AND d.given_up_at IS NULL AND d.next_at <= market_now()
	 ORDER BY n.at, n.id LIMIT 1 FOR UPDATE OF d SKIP LOCKED
)
UPDATE provider_deliveries d
   SET attempts = d.attempts + 1, next_at = market_now() + $3::interval, waits_for_source = false
  FROM due JOIN provider_notices n ON n.id = due.notice_id
 WHERE d.notice_id = due.notice_id AND d.channel = $2
RETURNING n.id, n.kind, n.at, n.facts, d.attempts, d.attempts_before`

// claim takes the oldest letter of a box that is due, and says whether there was one.
func (Store) claim(ctx context.Context, db postgres.DB, b Box) (c claimed, found bool, err error) {
	var facts []byte
	err = db.QueryRow(ctx, claimSQL, b.Service, b.Channel, lease).Scan(&c.ID, &c.Kind, &c.At, &facts, &c.attempts, &c.before)
	if errors.Is(err, pgx.ErrNoRows) {
		return claimed{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(facts, &c.Facts)
	}
	if err != nil {
		return claimed{}, false, fmt.Errorf("claim letter by %s for service %s: %w", b.Channel, b.Service, err)
	}
	c.Service, c.box = b.Service, b
	return c, true, nil
}

const sentSQL = `
UPDATE provider_deliveries SET sent_at = market_now(), given_up_at = NULL, last_status = $3, last_error = ''
 WHERE notice_id = $1 AND channel = $2 AND sent_at IS NULL`

// sent keeps that somebody took a letter, whichever attempt it was.
func (Store) sent(ctx context.Context, db postgres.DB, c claimed, status int) error {
	if _, err := db.Exec(ctx, sentSQL, c.ID, c.box.Channel, statusOrNull(status)); err != nil {
		return fmt.Errorf("keep that letter %s was sent by %s: %w", c.ID, c.box.Channel, err)
	}
	return nil
}

// An attempt that outlived its lease, or after which the letter was sent again by hand, has nothing to say about when it is tried next. One that failed waits
// for its own time, also where another letter met a limit meanwhile.
const failedSQL = `
UPDATE provider_deliveries
   SET next_at = market_now() + $5::interval, waits_for_source = false, given_up_at = CASE WHEN $6 THEN market_now() END, last_status = $7, last_error = $8
 WHERE notice_id = $1 AND channel = $2 AND sent_at IS NULL AND attempts = $3 AND attempts_before = $4`

// failed keeps why an attempt failed, and when the next one is; none where last.
func (Store) failed(ctx context.Context, db postgres.DB, c claimed, wait time.Duration, last bool, status int, why string) error {
	_, err := db.Exec(ctx, failedSQL, c.ID, c.box.Channel, c.attempts, c.before, wait, last, statusOrNull(status), why)
	if err != nil {
		return fmt.Errorf("keep that letter %s was not sent by %s: %w", c.ID, c.box.Channel, err)
	}
	return nil
}

// One statement for everything that waits: the one that met the limit was not tried, and keeps its attempts. Where it was sent again by hand meanwhile, it was
// one of those before.
const putOffSQL = `
UPDATE provider_deliveries
   SET next_at = $2, waits_for_source = true, attempts = attempts - CASE WHEN notice_id = $3 THEN 1 ELSE 0 END,
       attempts_before = CASE WHEN notice_id = $3 THEN least(attempts_before, attempts - 1) ELSE attempts_before END
 WHERE channel = $1 AND sent_at IS NULL AND given_up_at IS NULL AND (next_at < $2 OR notice_id = $3)`

// putOff lets everything that would go out by a channel wait until its source can be asked again, a moment of market time.
func (Store) putOff(ctx context.Context, db postgres.DB, met claimed, until time.Time) error {
	if _, err := db.Exec(ctx, putOffSQL, met.box.Channel, until, met.ID); err != nil {
		return fmt.Errorf("put off letters by %s: %w", met.box.Channel, err)
	}
	return nil
}

const releaseSQL = `
UPDATE provider_deliveries SET next_at = market_now(), waits_for_source = false
 WHERE channel = $1 AND sent_at IS NULL AND given_up_at IS NULL AND waits_for_source`

// Release makes everything due that waits for the source of a channel. The caller's transaction holds that it can be asked again.
func (Store) Release(ctx context.Context, db postgres.DB, by Channel) error {
	if _, err := db.Exec(ctx, releaseSQL, by); err != nil {
		return fmt.Errorf("release letters by %s: %w", by, err)
	}
	return nil
}

func statusOrNull(status int) *int {
	if status == 0 {
		return nil
	}
	return &status
}
