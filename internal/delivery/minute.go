package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/catalog"
	"market/internal/outage"
	"market/internal/postgres"
)

const (
	// minuteMax bounds how many deliveries of the window are looked at, the newest first.
	minuteMax = 200_000
	// servedMax bounds in how many of a service's newest deliveries one is looked for that was served.
	servedMax = 5_000
)

// fared is how one service fared with the calls that one replica asked it for within the window.
type fared struct {
	service, replica uuid.UUID // replica is zero where it is not known
	provider         string
	failed           bool // at least once, as outage.Joins says
}

// A minute is how the services fared within the window of an outage. It is not looked at closely where too few failed for any: all is empty then.
type minute struct {
	at  time.Time
	all []fared
}

// One look at the failures of the window, which are few, tells most of the time that there is nothing to see. $3 is a service that failed just now,
// and has no delivery yet.
const failedSQL = `
SELECT market_now(), count(DISTINCT service_id) FILTER (WHERE service_id IS DISTINCT FROM $3)
  FROM deliveries
 WHERE recorded_at > market_now() - $1::interval AND outcome = 'failed' AND asked AND origin IN ('external', 'unattributed') AND reason = ANY($2)`

const minuteSQL = `
WITH fared AS MATERIALIZED (
	SELECT service_id, replica, bool_or(failed) AS failed
	  FROM ((SELECT service_id, replica, outcome = 'failed' AND reason = ANY($2) AS failed
	           FROM deliveries
	          WHERE recorded_at > market_now() - $1::interval AND asked AND origin IN ('external', 'unattributed')
	          ORDER BY recorded_at DESC LIMIT $6)
	        UNION ALL
	        SELECT $3::uuid, $4::uuid, true WHERE $3::uuid IS NOT NULL) newest
	 GROUP BY service_id, replica
), known AS MATERIALIZED (
	SELECT s.id, s.base_url
	  FROM services s
	 WHERE s.id IN (SELECT service_id FROM fared)
	   AND EXISTS (
		SELECT 1 FROM unnest(ARRAY[false, true]) AS of (trial) CROSS JOIN LATERAL (
			SELECT outcome, party FROM deliveries
			 WHERE service_id = s.id AND trial = of.trial AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
			   AND recorded_at > market_now() - $5::interval
			 ORDER BY recorded_at DESC LIMIT $7
		) lately WHERE lately.outcome = 'served' AND lately.party = 'service')
)
SELECT f.service_id, f.replica, k.base_url, f.failed FROM fared f JOIN known k ON k.id = f.service_id`

// minuteOf looks at the window up to now. failed is a failure that is about to be recorded; nil: none is.
func minuteOf(ctx context.Context, db postgres.DB, p outage.Policy, failed *Delivery) (m minute, err error) {
	var (
		service, replica *uuid.UUID
		others           int
	)
	if failed != nil {
		service, replica = &failed.Service, failed.replica()
	}
	if err := db.QueryRow(ctx, failedSQL, p.Window, outage.Reasons(), service).Scan(&m.at, &others); err != nil {
		return minute{}, fmt.Errorf("count failing services: %w", err)
	}
	m.at = m.at.UTC()
	if failed != nil {
		others++
	}
	if others < p.Services {
		return m, nil
	}
	rows, err := db.Query(ctx, minuteSQL, p.Window, outage.Reasons(), service, replica, p.Known, minuteMax, servedMax)
	if err != nil {
		return minute{}, fmt.Errorf("look at the services of the minute: %w", err)
	}
	m.all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f fared, err error) {
		var (
			replica *uuid.UUID
			baseURL string
		)
		err = row.Scan(&f.service, &replica, &baseURL, &f.failed)
		if replica != nil {
			f.replica = *replica
		}
		f.provider = catalog.ProviderOf(baseURL)
		return f, err
	})
	if err != nil {
		return minute{}, fmt.Errorf("look at the services of the minute: %w", err)
	}
	return m, nil
}

// facts counts what replicas saw.
func (m minute) facts(of func(replica uuid.UUID) bool) outage.Facts {
	services, providers := map[uuid.UUID]bool{}, map[string]bool{}
	f := outage.Facts{At: m.at}
	for _, fared := range m.all {
		if !of(fared.replica) {
			continue
		}
		services[fared.service] = services[fared.service] || fared.failed
		if fared.failed {
			providers[fared.provider] = true
		}
	}
	f.Failing.Asked, f.Failing.Providers = len(services), len(providers)
	for _, failed := range services {
		if failed {
			f.Failing.Failed++
		}
	}
	return f
}

// ofReplica are the facts of one replica.
func (m minute) ofReplica(replica uuid.UUID) outage.Facts {
	return m.facts(func(of uuid.UUID) bool { return of == replica })
}

// ofFleet are those of the fleet: of the replicas that have no outage of their own, known or to be known when they look. What one replica cannot reach
// says nothing about the others, and it is all the same which of them looks first.
func (m minute) ofFleet(p outage.Policy, outages []outage.Outage) outage.Facts {
	down := map[uuid.UUID]bool{}
	for _, o := range outages {
		if o.Holds() && o.Replica != (uuid.UUID{}) {
			down[o.Replica] = true
		}
	}
	for _, fared := range m.all {
		if _, known := down[fared.replica]; !known && fared.replica != (uuid.UUID{}) { // which is not one replica, but all that are not known
			down[fared.replica] = p.Trips(m.ofReplica(fared.replica)) != ""
		}
	}
	return m.facts(func(of uuid.UUID) bool { return !down[of] })
}
