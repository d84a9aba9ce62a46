package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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
	if st.Plans == nil {
		return nil
	}
	var name string
	err := tx.QueryRow(ctx, planOfSQL, service).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the plan of service %s: %w", service, err)
	}
	return st.Plans.Allows(name, key, wanted)
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
