package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Phase is what of a notice a message tells.
type Phase string

const (
	// Raised is that there is a trouble.
	Raised Phase = "raised"
	// Recovered is that it is over.
	Recovered Phase = "recovered"
)

const (
	// lease is how long a message is left alone by others once one has it: longer than every channel takes together, and than a job may.
	lease = 2 * time.Minute
	// giveUpAfter is how long a message is tried.
	giveUpAfter = 72 * time.Hour
)

// waitAfter is how long after its so-manieth failure a message waits.
func waitAfter(failures int) time.Duration {
	waits := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}
	return waits[min(max(failures, 1), len(waits))-1]
}

// A due message is one to be sent now.
type due struct {
	Notice uuid.UUID `json:"notice"`
	Phase  Phase     `json:"phase"`
}

// Replicas race for what is due: who leases it sends it, and nobody else does before the lease has run out. That a trouble is over is told after the
// trouble.
const takeDueSQL = `
UPDATE notice_messages SET leased_until = market_now() + $2::interval
 WHERE (notice_id, phase) IN (
	SELECT notice_id, phase FROM notice_messages m
	 WHERE sent_at IS NULL AND given_up_at IS NULL AND next_at <= market_now() AND (leased_until IS NULL OR leased_until <= market_now())
	   AND (phase = 'raised' OR EXISTS (SELECT 1 FROM notice_messages r WHERE r.notice_id = m.notice_id AND r.phase = 'raised' AND r.sent_at IS NOT NULL))
	 ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING notice_id, phase`

// takeDue returns messages that are due, at most so many, and leases them to the caller.
func (Store) takeDue(ctx context.Context, db postgres.DB, limit int) ([]due, error) {
	rows, err := db.Query(ctx, takeDueSQL, limit, lease)
	if err != nil {
		return nil, fmt.Errorf("take due notices: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[due])
	if err != nil {
		return nil, fmt.Errorf("take due notices: %w", err)
	}
	return all, nil
}

// A pending message is one that was neither sent nor given up, with its notice.
type pending struct {
	due
	Kind      Kind
	Subject   string
	Outage    Outage
	RaisedAt  time.Time
	CalmSince *time.Time // when it was over, or was given up; nil: it holds
	SettledAt *time.Time
	Failures  int
}

// over says whether the trouble has been over for as long as that is told.
func (p pending) over() bool { return p.SettledAt != nil }

// about says whether a notice is about a channel that takes nothing, which then is not asked to take it to the operator. One whose guard is reached has
// units left for notices.
func (p pending) about(channel string) bool {
	return !p.over() && p.Subject == channel && (p.Kind == ChannelOut || p.Kind == SourceOut)
}

const pendingSQL = `
SELECT n.kind, n.subject, coalesce(nullif(n.what, ''), n.text), n.effect, n.look, n.raised_at, coalesce(n.calm_since, n.settled_at), n.settled_at, m.attempts
  FROM notice_messages m JOIN notices n ON n.id = m.notice_id
 WHERE m.notice_id = $1 AND m.phase = $2 AND m.sent_at IS NULL AND m.given_up_at IS NULL`

var errDone = errors.New("the message was sent or given up")

func (Store) pending(ctx context.Context, db postgres.DB, d due) (pending, error) {
	p := pending{due: d}
	err := db.QueryRow(ctx, pendingSQL, d.Notice, d.Phase).Scan(&p.Kind, &p.Subject, &p.Outage.What, &p.Outage.Effect, &p.Outage.Look, &p.RaisedAt,
		&p.CalmSince, &p.SettledAt, &p.Failures)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, errDone
	}
	if err != nil {
		return p, fmt.Errorf("read notice %s: %w", d.Notice, err)
	}
	return p, nil
}

// A message that told of the end as well makes the one of the end needless.
const sentSQL = `
WITH sent AS (
	UPDATE notice_messages SET sent_at = market_now(), channel = $3, leased_until = NULL
	 WHERE notice_id = $1 AND phase = $2 AND sent_at IS NULL AND given_up_at IS NULL
)
DELETE FROM notice_messages WHERE $4 AND notice_id = $1 AND phase = 'recovered' AND sent_at IS NULL`

// sent keeps which channel took a message, and whether it told of the end of a trouble besides its beginning.
func (Store) sent(ctx context.Context, db postgres.DB, d due, channel string, ended bool) error {
	if _, err := db.Exec(ctx, sentSQL, d.Notice, d.Phase, channel, ended && d.Phase == Raised); err != nil {
		return fmt.Errorf("keep that notice %s was sent: %w", d.Notice, err)
	}
	return nil
}

// Giving up clears the latch: the notice is settled, so that the next one who sees the trouble raises it again. Nothing tells of its end then.
const putOffSQL = `
WITH put_off AS (
	UPDATE notice_messages
	   SET attempts = attempts + $3, last_error = $4, leased_until = NULL, next_at = greatest(market_now() + $5::interval, $6),
	       given_up_at = CASE WHEN $7 OR made_at <= market_now() - $8::interval THEN market_now() END
	 WHERE notice_id = $1 AND phase = $2 AND sent_at IS NULL AND given_up_at IS NULL
	RETURNING notice_id, phase, given_up_at IS NOT NULL AS given_up
), cleared AS (
	UPDATE notices SET settled_at = market_now()
	 WHERE settled_at IS NULL AND id = (SELECT notice_id FROM put_off WHERE given_up AND phase = 'raised')
), dropped AS (
	DELETE FROM notice_messages WHERE phase = 'recovered' AND notice_id = (SELECT notice_id FROM put_off WHERE given_up AND phase = 'raised')
)
SELECT coalesce((SELECT given_up FROM put_off), false)`

// A delay is until when a message waits, and why.
type delay struct {
	failures int // 1: an attempt was made and failed; 0: none could be made
	why      string
	wait     time.Duration
	until    *time.Time // market time that the database gave; nil: wait alone counts
	forGood  bool       // it is not tried again
}

// putOff puts a message off, or gives it up where it was tried for long enough, and says which.
func (Store) putOff(ctx context.Context, db postgres.DB, d due, by delay) (givenUp bool, err error) {
	err = db.QueryRow(ctx, putOffSQL, d.Notice, d.Phase, by.failures, by.why, by.wait, by.until, by.forGood, giveUpAfter).Scan(&givenUp)
	if err != nil {
		return false, fmt.Errorf("put off notice %s: %w", d.Notice, err)
	}
	return givenUp, nil
}

const deferAllSQL = `
UPDATE notice_messages SET next_at = $1 WHERE sent_at IS NULL AND given_up_at IS NULL AND next_at < $1`

// deferAll moves everything that waits: no channel may be asked before then.
func (Store) deferAll(ctx context.Context, db postgres.DB, until time.Time) error {
	if _, err := db.Exec(ctx, deferAllSQL, until); err != nil {
		return fmt.Errorf("defer notices: %w", err)
	}
	return nil
}

const resumeSQL = `
UPDATE notice_messages SET next_at = market_now() WHERE sent_at IS NULL AND given_up_at IS NULL AND next_at > market_now()`

// Resume makes everything due that waits: a channel can be asked again.
func (Store) Resume(ctx context.Context, db postgres.DB) error {
	if _, err := db.Exec(ctx, resumeSQL); err != nil {
		return fmt.Errorf("resume notices: %w", err)
	}
	return nil
}
