package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Change is one move of a service's state: what for, by whom, and the reason in words.
type Change struct {
	Cause  Cause
	By     Author
	Reason string
}

// One statement: the state is checked and set at once, and the database writes the row that says so beside it.
const moveSQL = `
UPDATE services SET state = $3, state_cause = $4, state_actor = $5, state_by = $6, state_reason = $7, state_since = market_now()
 WHERE id = $1 AND state = ANY($2)`

// Move changes the state of a service as the table of moves allows, and says whether it did: false where the service is in a state from which this
// change does not lead. A cause or an author that can change nothing at all is an error.
func (Store) Move(ctx context.Context, db postgres.DB, serviceID uuid.UUID, c Change) (bool, error) {
	from, to := movesOf(c.Cause, c.By.Actor)
	if to == "" || c.By.Name == "" || c.Reason == "" {
		return false, fmt.Errorf("move service %s: %q by %q for %q is no change of a state", serviceID, c.Cause, c.By.Actor, c.Reason)
	}
	tag, err := db.Exec(ctx, moveSQL, serviceID, from, to, c.Cause, c.By.Actor, c.By.Name, c.Reason)
	if err != nil {
		return false, fmt.Errorf("make service %s %s: %w", serviceID, to, err)
	}
	return tag.RowsAffected() == 1, nil
}

// Delist takes a service off the shelf for its strikes, and says whether it did: one that is off it for a while as well, which then does not come back
// before its strikes are reviewed. A retired service stays retired, and a delisted one keeps the moment and the reason of its first delisting.
func (st Store) Delist(ctx context.Context, db postgres.DB, serviceID uuid.UUID, reason string) (bool, error) {
	return st.Move(ctx, db, serviceID, Change{CauseStrikes, Recorder, reason})
}

// Retire withdraws a service for good, and says whether it was not yet.
func (st Store) Retire(ctx context.Context, db postgres.DB, serviceID uuid.UUID, by Author, reason string) (bool, error) {
	return st.Move(ctx, db, serviceID, Change{CauseWithdrawn, by, reason})
}

// An Event is one change of a service's state that happened.
type Event struct {
	At     time.Time
	From   State // empty: the service was created
	Cause  Cause
	By     Author
	To     State
	Reason string // for the owner and for admins
}

// PublicReason is the event's reason in words for everybody.
func (e Event) PublicReason() string { return publicReason(e.Cause, e.Reason) }

// EventsMax is how many events of a service are shown.
const EventsMax = 20

const eventsSQL = `
SELECT at, from_state, cause, actor, by, to_state, detail FROM service_events WHERE service_id = $1 ORDER BY id DESC LIMIT $2`

// Events returns the last EventsMax changes of a service's state, the newest first.
func (Store) Events(ctx context.Context, db postgres.DB, serviceID uuid.UUID) ([]Event, error) {
	rows, err := db.Query(ctx, eventsSQL, serviceID, EventsMax)
	if err != nil {
		return nil, fmt.Errorf("read events of service %s: %w", serviceID, err)
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Event, err error) {
		err = row.Scan(&e.At, &e.From, &e.Cause, &e.By.Actor, &e.By.Name, &e.To, &e.Reason)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read events of service %s: %w", serviceID, err)
	}
	return events, nil
}
