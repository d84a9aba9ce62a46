package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/plan"
	"market/internal/postgres"
	"market/internal/refusal"
)

// The lock is alone in its statement, so that the count after it sees every listing that was committed before it was had: of two replicas that list the last
// one that a plan has, one lists it. What an account had already when its plan was made smaller stays.
const (
	lockAccountSQL = `
SELECT plan FROM accounts WHERE id = $1 FOR NO KEY UPDATE`
	listingsSQL = `
SELECT count(*) FROM services WHERE owner_id = $1 AND state <> 'retired'`
)

// mayList refuses a draft that its account's plan has no room for. One that is for no account is the operator's own, which has no plan.
func (st Store) mayList(ctx context.Context, tx pgx.Tx, d Draft) error {
	if st.Plans == nil || d.Owner == (uuid.UUID{}) {
		return nil
	}
	var (
		name     string
		listings int64
	)
	if err := tx.QueryRow(ctx, lockAccountSQL, d.Owner).Scan(&name); errors.Is(err, pgx.ErrNoRows) {
		return refusal.New(call.NotFound, "there is no such account")
	} else if err != nil {
		return fmt.Errorf("lock account %s: %w", d.Owner, err)
	}
	if err := tx.QueryRow(ctx, listingsSQL, d.Owner).Scan(&listings); err != nil {
		return fmt.Errorf("count listings of account %s: %w", d.Owner, err)
	}
	if err := st.Plans.Allows(name, plan.KeyListings, listings+1); err != nil {
		return err
	}
	if err := st.mayMake(ctx, tx, name, plan.KeyListings, d.Owner); err != nil {
		return err
	}
	if err := st.Plans.Allows(name, plan.KeyEndpoints, int64(len(d.Endpoints))); err != nil {
		return at(err, "/endpoints")
	}
	for i, e := range d.Endpoints {
		if err := st.Plans.Allows(name, plan.KeyTrialCallsPerDay, int64(e.TrialCallsPerDay)); err != nil {
			return at(err, "/endpoints/"+strconv.Itoa(i)+trialsMember)
		}
	}
	return nil
}

// madeTimes is how many times over an account may make within a day what its plan has at a time. Rows of what is retired stay for ever, so whoever lists
// and retires in a loop would fill the tables without ever having more than the plan has.
const madeTimes = 10

// What was made within a day, also of what is retired, and when the first of it is a day old.
const (
	listedSQL = `
SELECT count(*), coalesce(min(created_at), market_now()) + interval '1 day' FROM services WHERE owner_id = $1 AND created_at > market_now() - interval '1 day'`
	addedSQL = `
SELECT count(*), coalesce(min(created_at), market_now()) + interval '1 day' FROM endpoints WHERE service_id = $1 AND created_at > market_now() - interval '1 day'`
)

// mayMake refuses one more listing of an account, or endpoint of a service, for a day. The caller has locked what it is made in.
func (st Store) mayMake(ctx context.Context, tx pgx.Tx, name string, of plan.Key, in uuid.UUID) error {
	var (
		made  int64
		again time.Time
		err   error
	)
	what, where := "listings", "the account"
	if of == plan.KeyEndpoints {
		what, where = "endpoints", "the service"
		err = tx.QueryRow(ctx, addedSQL, in).Scan(&made, &again)
	} else {
		err = tx.QueryRow(ctx, listedSQL, in).Scan(&made, &again)
	}
	if err != nil {
		return fmt.Errorf("count %s of %s: %w", what, in, err)
	}
	if made < madeTimes*of.Field().Of(st.Plans.Of(name).Limits) {
		return nil
	}
	return refusal.New(call.TooMany, "%d %s were made in %s within a day, with those that are retired, which is as many as are taken: %d times what the plan has", made, what, where, madeTimes).
		WithUntil(again)
}

const trialsMember = "/trial_calls_per_day"

// at names the member of a document that a plan does not allow.
func at(err error, member string) error {
	if no, refused := errors.AsType[*refusal.Error](err); refused {
		no.Fields = []refusal.Field{{Name: member, Message: no.Detail}}
	}
	return err
}

const planOfSQL = `
SELECT a.plan FROM services s JOIN accounts a ON a.id = s.owner_id WHERE s.id = $1`

// allows refuses what the plan of a service's owner has no room for. The service is locked, so nobody else adds to it.
func (st Store) allows(ctx context.Context, tx pgx.Tx, service uuid.UUID, key plan.Key, wanted int64) error {
	name, planned, err := st.planOf(ctx, tx, service)
	if err != nil || !planned {
		return err
	}
	return st.Plans.Allows(name, key, wanted)
}

// planOf is the plan of a service's owner; false where it has none.
func (st Store) planOf(ctx context.Context, tx pgx.Tx, service uuid.UUID) (name string, planned bool, err error) {
	if st.Plans == nil {
		return "", false, nil
	}
	err = tx.QueryRow(ctx, planOfSQL, service).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("find the plan of service %s: %w", service, err)
	}
	return name, true, nil
}

// mayAdd refuses an endpoint that its service's owner has no room for. The service is locked. How many are made in a day is no matter of admins.
func (st Store) mayAdd(ctx context.Context, tx pgx.Tx, service uuid.UUID, wanted int64, by Author) error {
	name, planned, err := st.planOf(ctx, tx, service)
	if err != nil || !planned {
		return err
	}
	if err := st.Plans.Allows(name, plan.KeyEndpoints, wanted); err != nil || by.Actor == ActorAdmin {
		return err
	}
	return st.mayMake(ctx, tx, name, plan.KeyEndpoints, service)
}

const usedSQL = `
SELECT count(*), coalesce(max(e.n), 0), coalesce(max(e.trials), 0)
  FROM services s
  LEFT JOIN LATERAL (SELECT count(*) AS n, max(trial_calls_per_day) AS trials FROM endpoints WHERE service_id = s.id AND retired_at IS NULL) e ON true
 WHERE s.owner_id = $1 AND s.state <> 'retired'`

// Used is what an account has of each limit that is counted: of what is per listing or per endpoint, the most that one of them has.
func (Store) Used(ctx context.Context, db postgres.DB, account uuid.UUID) (map[plan.Key]int64, error) {
	var listings, endpoints, trials int64
	if err := db.QueryRow(ctx, usedSQL, account).Scan(&listings, &endpoints, &trials); err != nil {
		return nil, fmt.Errorf("count what account %s has: %w", account, err)
	}
	return map[plan.Key]int64{plan.KeyListings: listings, plan.KeyEndpoints: endpoints, plan.KeyTrialCallsPerDay: trials}, nil
}
