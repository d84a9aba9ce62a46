package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/cooldown"
	"market/internal/crash"
	"market/internal/outage"
	"market/internal/payment"
	"market/internal/postgres"
	"market/internal/refund"
	"market/internal/strikes"
	"market/internal/switches"
)

// Jobs enqueues work inside the caller's transaction.
type Jobs interface {
	InsertTx(ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
}

// Recorder is the one writer of what a call's end means: the delivery, the call's final state, strikes, cooldown, delisting and the
// refund, together or not at all.
type Recorder struct {
	db       *pgxpool.Pool
	jobs     Jobs
	catalog  catalog.Store
	strikes  strikes.Store
	cooldown cooldown.Store
	refunds  refund.Store
	outages  outage.Store
	switches switches.Store
	outage   outage.Policy
	rest     time.Duration // a cooldown, where the service names none
	// retention is how long a served answer can be fetched again, where the plan of the service's owner does not say.
	retention time.Duration
	turns     turns
}

// NewRecorder returns a recorder that counts by a policy, lets services rest for so long, and keeps served answers for so long.
func NewRecorder(db *pgxpool.Pool, jobs Jobs, policy strikes.Policy, rest, retention time.Duration) *Recorder {
	return &Recorder{db: db, jobs: jobs, strikes: strikes.NewStore(policy), outage: outage.Usual(), rest: rest, retention: retention}
}

// Record writes how a call ended. payment.ErrMoved: the call was not where this outcome can follow, because it was recorded already or
// somebody else took it over; nothing was written.
func (r *Recorder) Record(ctx context.Context, d Delivery) error {
	_, err := r.end(ctx, d)
	return err
}

// end is Record, and returns the delivery as it was written: what looked like the service's doing may be ours.
func (r *Recorder) end(ctx context.Context, d Delivery) (Delivery, error) {
	if d.Trial { // no call is moved
		return r.record(ctx, d)
	}
	crash.BeforeMove(d.follows(), call.FinalState(d.Outcome))
	written, err := r.record(ctx, d)
	if err != nil {
		return d, err
	}
	crash.AfterMove(d.follows(), call.FinalState(d.Outcome))
	return written, nil
}

// effect is what a delivery does to the strikes of its service, and rests for how long the service rests after it.
func (d Delivery) effect() strikes.Effect {
	return strikes.EffectOf(d.Outcome, d.Party, d.Reason, d.Origin)
}

func (r *Recorder) rests(d Delivery) time.Duration {
	return cooldown.After(d.Outcome, d.Party, d.Reason, d.Origin, d.RetryAfter, r.rest)
}

func (r *Recorder) record(ctx context.Context, d Delivery) (written Delivery, err error) {
	if d.effect() != strikes.Increment && r.rests(d) == 0 && d.Refund == nil && !d.excusable() {
		return d, r.write(ctx, r.db, d)
	}
	end, err := r.turns.take(ctx, d.Service)
	if err != nil {
		return d, fmt.Errorf("record %s of call %s: %w", d.Outcome, d.Call, err)
	}
	defer end()
	err = pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		written, err = r.enforce(ctx, tx, d)
		return err
	})
	if err != nil {
		return d, fmt.Errorf("record %s of call %s: %w", d.Outcome, d.Call, err)
	}
	return written, nil
}

// enforce applies what a delivery means for its service and its payer. The transaction also holds the delivery itself, so there is no
// strike without its evidence, no evidence without its strike, and no failure of a paid call without its refund.
func (r *Recorder) enforce(ctx context.Context, tx pgx.Tx, d Delivery) (Delivery, error) {
	if _, err := r.catalog.Lock(ctx, tx, d.Service); err != nil {
		return d, err
	}
	d, err := r.excuse(ctx, tx, d)
	if err != nil {
		return d, err
	}
	if d, err = r.suspend(ctx, tx, d); err != nil {
		return d, err
	}
	if err := r.write(ctx, tx, d); err != nil {
		return d, err
	}
	if d.Refund != nil {
		if err := r.owe(ctx, tx, d); err != nil {
			return d, err
		}
	}
	if d.also != nil {
		if err := d.also(ctx, tx); err != nil {
			return d, err
		}
	}
	if d.Suspended {
		return d, nil
	}
	if rest := r.rests(d); rest > 0 {
		if err := r.cooldown.Start(ctx, tx, d.Service, d.ID, rest); err != nil {
			return d, err
		}
	}
	if d.effect() == strikes.Increment {
		return d, r.strike(ctx, tx, d)
	}
	return d, nil
}

// owe owes the payer what it paid, and enqueues that.
func (r *Recorder) owe(ctx context.Context, tx pgx.Tx, d Delivery) error {
	if err := r.refunds.Owe(ctx, tx, *d.Refund); err != nil {
		return err
	}
	if _, err := r.jobs.InsertTx(ctx, tx, refund.Args{Call: d.Call}, nil); err != nil {
		return fmt.Errorf("enqueue refund: %w", err)
	}
	if _, err := tx.Exec(ctx, caughtUpSQL, d.Call, whyLost, whyFalse); err != nil {
		return fmt.Errorf("follow payment of refund: %w", err)
	}
	return nil
}

// Whoever walks a call knows its payment as it was when it was proved, or believed, and the chain may have moved it since, or taken it back. The call's
// row is locked by its delivery, so the sweeper has written that before this, or finds the refund after it.
const caughtUpSQL = `
UPDATE refunds r
   SET payment_transaction = coalesce(c.transaction, r.payment_transaction),
       state = CASE c.payment_state WHEN 'lost' THEN 'void' ELSE r.state END,
       why = CASE WHEN c.payment_state <> 'lost' THEN r.why WHEN c.transaction IS NULL THEN $3 ELSE $2 END
  FROM calls c
 WHERE r.call_id = $1 AND c.id = r.call_id AND (c.payment_state = 'lost' OR c.transaction <> r.payment_transaction)`

// One round trip writes the delivery, moves the call to its final state, keeps the answer and clears strikes. It locks no service and touches open strikes
// only. A paid call is moved from the one state that its outcome follows, by its owner or, once its lease has run out, by whoever sweeps: a
// second recorder writes nothing. A trial has no call row.
// A success clears the strikes whose last evidence was recorded before the success was asked.
const recordSQL = `
WITH moved AS (
	UPDATE calls SET state = $3, state_since = market_now()
	 WHERE id = $2 AND NOT $4 AND state = $5
	   AND (owner = $21 OR ($21::uuid IS NULL AND lease_until + $22::interval <= market_now()))
	RETURNING id, payment_identifier
), delivered AS (
	INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at,
		upstream_status, latency_us, method, path, source, payer, detail, replica, excused_by, suspended)
	SELECT $1, $2, $4, $6, $7, $8, $9, $10, $11, $12::timestamptz IS NOT NULL, $12, $13, $14, $15, $16, $17, $18, $19, $25, $26, $27
	 WHERE $4 OR EXISTS (SELECT 1 FROM moved)
	RETURNING id
), kept AS (
	INSERT INTO answers (call_id, status, sealed, identifier, source, expires_at)
	SELECT id, $13, $23, payment_identifier, $17::inet, market_now() + $24::interval FROM moved WHERE $23::bytea IS NOT NULL
), cleared AS (
	UPDATE strikes SET state = 'cleared', cleared_at = market_now(), cleared_by = $1
	 WHERE $20 AND service_id = $6 AND state = 'open' AND last_evidence_at < $12 AND EXISTS (SELECT 1 FROM delivered)
)
SELECT count(*) FROM delivered`

func (r *Recorder) write(ctx context.Context, db postgres.DB, d Delivery) error {
	var askedAt *time.Time
	if d.asked() {
		askedAt = &d.AskedAt
	}
	var status *int
	if d.Status != 0 {
		status = &d.Status
	}
	var payer []byte
	if !d.Trial {
		payer = d.Payer[:]
	}
	var owner *uuid.UUID
	if d.owner != (uuid.UUID{}) {
		owner = &d.owner
	}
	var excused *uuid.UUID
	if d.Excused != (uuid.UUID{}) {
		excused = &d.Excused
	}
	clears := d.effect() == strikes.Clear
	var written int
	err := db.QueryRow(ctx, recordSQL, d.ID, d.Call, call.FinalState(d.Outcome), d.Trial, d.follows(),
		d.Service, d.Endpoint, d.Outcome, d.Reason, d.Party, d.Origin, askedAt, status, d.Latency.Microseconds(),
		d.Method, d.Path, d.Source, payer, d.Detail, clears, owner, d.grace, d.sealed, cmp.Or(d.kept, r.retention), d.replica(), excused, d.Suspended).Scan(&written)
	if err != nil {
		return fmt.Errorf("write delivery of call %s: %w", d.Call, err)
	}
	if written == 0 {
		return payment.ErrMoved
	}
	return nil
}

const (
	recordTries = 4
	recordWait  = 250 * time.Millisecond
)

// persist records until it is known that the outcome stands: a lost commit is tried again, and "moved" after a first try whose answer
// was lost means that it was written. The outcome that stands may be another writer's; recorded tells.
func (r *Recorder) persist(ctx context.Context, d Delivery) (Delivery, error) {
	var err error
	for try := range recordTries {
		if try > 0 {
			wait := time.NewTimer(recordWait << try)
			select {
			case <-ctx.Done():
				wait.Stop()
				return d, errors.Join(err, ctx.Err())
			case <-wait.C:
			}
		}
		written, failed := r.end(ctx, d)
		if err = failed; err == nil {
			return written, nil
		}
		if written, ours, findErr := r.recorded(ctx, d); findErr == nil && ours {
			return written, nil
		}
		if errors.Is(err, payment.ErrMoved) {
			return d, err
		}
	}
	return d, err
}

const recordedSQL = `SELECT party, excused_by, detail FROM deliveries WHERE id = $1`

// recorded returns this very delivery as it stands in the database, and says whether it does.
func (r *Recorder) recorded(ctx context.Context, d Delivery) (Delivery, bool, error) {
	var excused *uuid.UUID
	err := r.db.QueryRow(ctx, recordedSQL, d.ID).Scan(&d.Party, &excused, &d.Detail)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, false, nil
	}
	if err != nil {
		return d, false, fmt.Errorf("look for delivery %s: %w", d.ID, err)
	}
	if excused != nil {
		d.Excused = *excused
	}
	return d, true, nil
}
