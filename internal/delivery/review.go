package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/cooldown"
	"market/internal/refusal"
	"market/internal/strikes"
)

// Review is the one writer of what people decide about strikes and about what followed from them, and of what the program decides about an outage of its
// own. Each decision is one transaction that holds the lock of the service's row: of two at once the first stands, and the second is told. Each
// leaves an entry in the audit.
type Review struct {
	db       *pgxpool.Pool
	catalog  catalog.Store
	strikes  strikes.Store
	cooldown cooldown.Store
	audit    audit.Store
}

// NewReview returns a review that counts by a policy.
func NewReview(db *pgxpool.Pool, policy strikes.Policy) *Review {
	return &Review{db: db, strikes: strikes.NewStore(policy)}
}

// A Decision is what was decided about a strike or a service, and how the service stood before and after.
type Decision struct {
	Entry         int64 // its number in the audit
	Action        audit.Action
	Strike        *uuid.UUID // nil where it was about the service
	Service       string     // slug
	At            time.Time
	By            catalog.Author
	Reason        string
	Before, After Case
	Archived      int // strikes, by a relisting
}

// A Case is how a service stands with its strikes. It is kept in the audit as JSON, so its members are a contract.
type Case struct {
	State    catalog.State `json:"state"`
	Counting int           `json:"counting"` // open strikes in the window
	// Strikes are those that were open before, and the one that was decided on, the first 100.
	Strikes       map[uuid.UUID]strikes.State `json:"strikes"`
	CooldownUntil *time.Time                  `json:"cooldown_until,omitempty"` // nil: it does not rest
}

// A subject is a service whose row is locked, and how it stands.
type subject struct {
	Case
	service uuid.UUID
	slug    string
}

const caseSQL = `
SELECT s.id, s.slug, s.state,
       (SELECT count(*) FROM strikes WHERE service_id = s.id AND state = 'open' AND opened_at > market_now() - $2::interval),
       (SELECT coalesce(jsonb_object_agg(id, state), '{}')
          FROM (SELECT id, state FROM strikes WHERE service_id = s.id AND (state = 'open' OR id = ANY($3))
                 ORDER BY id = ANY($3) DESC, opened_at, id LIMIT 100) touched),
       (SELECT until FROM cooldowns WHERE service_id = s.id AND until > market_now())
  FROM services s WHERE s.id = $1`

// look reads how a service stands, with the strikes that are open and those named. Its row is locked.
func (r *Review) look(ctx context.Context, tx pgx.Tx, service uuid.UUID, of ...uuid.UUID) (c subject, err error) {
	if of == nil {
		of = []uuid.UUID{}
	}
	var states []byte
	err = tx.QueryRow(ctx, caseSQL, service, r.strikes.Policy().Window, of).Scan(&c.service, &c.slug, &c.State, &c.Counting, &states, &c.CooldownUntil)
	if err == nil {
		err = json.Unmarshal(states, &c.Strikes)
	}
	if err != nil {
		return subject{}, fmt.Errorf("look at service %s: %w", service, err)
	}
	return c, nil
}

// Void finds that a strike was none, and takes back what followed from it: it does not count, a cooldown that no other failure needs ends, and where its service
// was taken off the shelf by it, the service is again what it was before. One that was cleared did not count already. A strike that a review has
// closed, or that was upheld and not appealed against since, is a refusal with Conflict. So is, for the program, one that has evidence which no outage excuses.
func (r *Review) Void(ctx context.Context, strike uuid.UUID, by catalog.Author, reason string) (Decision, error) {
	return r.decide(ctx, audit.Void, strike, by, reason, func(tx pgx.Tx, before subject) error {
		if by.Actor == catalog.ActorSystem {
			if err := stillGroundless(ctx, tx, strike); err != nil {
				return err
			}
		}
		if _, err := r.strikes.Void(ctx, tx, strike); err != nil {
			return err
		}
		if err := r.endRest(ctx, tx, before.service); err != nil {
			return err
		}
		_, err := r.undo(ctx, tx, before, catalog.Change{By: by, Reason: reason})
		return err
	})
}

// Uphold finds that a strike stays. It stands until the provider appeals against it; until then another decision is a refusal with Conflict.
func (r *Review) Uphold(ctx context.Context, strike uuid.UUID, by catalog.Author, reason string) (Decision, error) {
	return r.decide(ctx, audit.Uphold, strike, by, reason, func(pgx.Tx, subject) error { return nil })
}

const (
	serviceOfStrikeSQL = `SELECT service_id FROM strikes WHERE id = $1`

	// A failure while a rest runs does not start another, and would have: it keeps up the rest that it fell into.
	restNeededSQL = `
SELECT EXISTS (
	SELECT 1
	  FROM cooldowns c
	  JOIN deliveries first ON first.id = c.started_by
	  JOIN deliveries d ON d.service_id = c.service_id AND d.recorded_at >= first.recorded_at
	  LEFT JOIN strike_deliveries sd ON sd.delivery_id = d.id
	  LEFT JOIN strikes st ON st.id = sd.strike_id
	 WHERE c.service_id = $1 AND c.until > market_now()
	   AND d.outcome = 'failed' AND d.party = 'service' AND d.origin IN ('external', 'unattributed') AND d.excused_by IS NULL
	   AND NOT d.suspended AND st.state IS DISTINCT FROM 'voided')`
)

// endRest ends the rest of a service, unless it has failed since that began by its own doing and in no strike that is void. What failed while strikes were
// suspended needs no rest. Its row is locked.
func (r *Review) endRest(ctx context.Context, tx pgx.Tx, service uuid.UUID) error {
	var needed bool
	if err := tx.QueryRow(ctx, restNeededSQL, service).Scan(&needed); err != nil {
		return fmt.Errorf("look for failures that need the rest of service %s: %w", service, err)
	}
	if needed {
		return nil
	}
	_, err := r.cooldown.End(ctx, tx, service)
	return err
}

// decide makes one decision about a strike that nobody has decided about yet.
func (r *Review) decide(ctx context.Context, action audit.Action, strike uuid.UUID, by catalog.Author, reason string,
	do func(tx pgx.Tx, before subject) error,
) (d Decision, err error) {
	if !mayReview(by) {
		return Decision{}, fmt.Errorf("review: %s of strike %s: %q decides nothing", action, strike, by.Actor)
	}
	err = pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		var service uuid.UUID
		if err := tx.QueryRow(ctx, serviceOfStrikeSQL, strike).Scan(&service); errors.Is(err, pgx.ErrNoRows) {
			return refusal.New(call.NotFound, "there is no such strike")
		} else if err != nil {
			return fmt.Errorf("find strike %s: %w", strike, err)
		}
		if _, err := r.catalog.Lock(ctx, tx, service); err != nil {
			return err
		}
		before, err := r.look(ctx, tx, service, strike)
		if err != nil {
			return err
		}
		if err := r.undecided(ctx, tx, before, strike); err != nil {
			return err
		}
		if err := do(tx, before); err != nil {
			return err
		}
		entry := audit.Entry{Action: action, Subject: audit.Strike(strike), Reason: reason}
		d, err = r.keep(ctx, tx, entry, by, before, &strike)
		return err
	})
	if err != nil {
		return Decision{}, wrapReview(action, err)
	}
	return d, nil
}

// mayReview says who decides: people who are trusted with it, and the program about its own outages. A provider appeals.
func mayReview(by catalog.Author) bool {
	return by.Name != "" && (by.Actor == catalog.ActorAdmin || by.Actor == catalog.ActorSystem)
}

// wrapReview leaves a refusal as it is: it is told to whoever decides.
func wrapReview(action audit.Action, err error) error {
	if _, no := errors.AsType[*refusal.Error](err); no {
		return err
	}
	return fmt.Errorf("review: %s: %w", action, err)
}

// keep writes the entry of a decision, with how its service stood before and stands now, counts the appeals as answered that it answers, and tells the
// provider.
func (r *Review) keep(ctx context.Context, tx pgx.Tx, e audit.Entry, by catalog.Author, before subject, strike *uuid.UUID) (Decision, error) {
	touched := make([]uuid.UUID, 0, len(before.Strikes))
	for id := range before.Strikes {
		touched = append(touched, id)
	}
	after, err := r.look(ctx, tx, before.service, touched...)
	if err != nil {
		return Decision{}, err
	}
	if err := e.Changed(before.Case, after.Case); err != nil {
		return Decision{}, err
	}
	e.Actor, e.By, e.Service = string(by.Actor), by.Name, before.service
	if e, err = r.audit.Add(ctx, tx, e); err != nil {
		return Decision{}, err
	}
	if err := answerAppeals(ctx, tx, e, strike, before.Case, after.Case); err != nil {
		return Decision{}, err
	}
	told := telling{service: before.service, kinds: toldOf(e.Action, e.Subject.Kind, before.State, after.State), reason: e.Reason, by: by, strike: strike}
	if err := tell(ctx, tx, r.strikes.Policy(), told); err != nil {
		return Decision{}, err
	}
	return Decision{Entry: e.ID, Action: e.Action, Strike: strike, Service: before.slug, At: e.At, By: by, Reason: e.Reason, Before: before.Case, After: after.Case}, nil
}
