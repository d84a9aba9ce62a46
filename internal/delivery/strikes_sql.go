package delivery

import (
	"context"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/strikes"
)

// spreadSQL sums evidence (key, at, trial, network, source, payer) up by its key. What an outage of ours excuses is none.
const spreadSQL = `
sources AS (
	SELECT DISTINCT ON (key) key, network, n, addresses, count(*) OVER (PARTITION BY key) AS networks
	  FROM (SELECT key, network, count(*) AS n, count(DISTINCT source) AS addresses FROM evidence GROUP BY key, network) each
	 ORDER BY key, n DESC, network
), payers AS (
	SELECT DISTINCT ON (key) key, payer, n, count(*) OVER (PARTITION BY key) AS wallets
	  FROM (SELECT key, payer, count(*) AS n FROM evidence WHERE payer IS NOT NULL GROUP BY key, payer) each
	 ORDER BY key, n DESC, payer
), spread AS (
	SELECT e.key, count(*) AS evidence, count(*) FILTER (WHERE e.trial) AS trials, min(e.at) AS first, max(e.at) AS last,
	       s.networks, s.network, s.n AS of_network, s.addresses, coalesce(p.wallets, 0) AS wallets, p.payer, coalesce(p.n, 0) AS of_payer
	  FROM evidence e JOIN sources s USING (key) LEFT JOIN payers p USING (key)
	 GROUP BY e.key, s.networks, s.network, s.n, s.addresses, p.wallets, p.payer, p.n
)`

// spreadColumns are what a spreadRow reads, in its order.
const spreadColumns = `
spread.evidence, spread.trials, spread.first, spread.last, spread.networks, spread.network, spread.of_network, spread.addresses,
spread.wallets, spread.payer, spread.of_payer`

// A spreadRow is a spread as it is read; all of it is null where there is no evidence.
type spreadRow struct {
	evidence, trials, networks, ofNetwork, addresses, wallets, ofPayer *int
	first, last                                                        *time.Time
	network                                                            *netip.Prefix
	payer                                                              []byte
}

func (r *spreadRow) into() []any {
	return []any{&r.evidence, &r.trials, &r.first, &r.last, &r.networks, &r.network, &r.ofNetwork, &r.addresses, &r.wallets, &r.payer, &r.ofPayer}
}

func (r *spreadRow) spread() strikes.Spread {
	if r.evidence == nil {
		return strikes.Spread{}
	}
	return strikes.Spread{Evidence: *r.evidence, Trials: *r.trials, First: r.first.UTC(), Last: r.last.UTC(),
		Sources: *r.networks, LargestSource: *r.network, FromLargest: *r.ofNetwork, Addresses: *r.addresses,
		Payers: *r.wallets, LargestPayer: common.BytesToAddress(r.payer), ByLargest: *r.ofPayer}
}

// A success that cleared several strikes cleared once.
const summariesSQL = `
WITH counting AS MATERIALIZED (
	SELECT id, service_id FROM strikes
	 WHERE state = 'open' AND opened_at > market_now() - $1::interval AND ($3::uuid IS NULL OR service_id = $3)
	 ORDER BY last_evidence_at DESC LIMIT $2
), evidence AS MATERIALIZED (
	SELECT c.service_id AS key, d.recorded_at AS at, d.trial, ` + networkSQL + ` AS network, d.source, d.payer
	  FROM counting c
	  JOIN strike_deliveries sd ON sd.strike_id = c.id
	  JOIN deliveries d ON d.id = sd.delivery_id AND d.excused_by IS NULL
), ` + spreadSQL + `
SELECT s.id, s.slug, s.name, s.state, (SELECT count(*) FROM counting c WHERE c.service_id = s.id),
       cleared.times, cleared.trials, cleared.networks, cleared.addresses, cleared.last, ` + spreadColumns + `
  FROM services s
  LEFT JOIN spread ON spread.key = s.id
 CROSS JOIN LATERAL (
	SELECT count(*) AS times, count(*) FILTER (WHERE d.trial) AS trials, count(DISTINCT ` + networkSQL + `) AS networks,
	       count(DISTINCT d.source) AS addresses, max(c.cleared_at) AS last
	  FROM (SELECT cleared_by, max(cleared_at) AS cleared_at FROM strikes
	         WHERE service_id = s.id AND state = 'cleared' AND cleared_at > market_now() - $1::interval
	         GROUP BY cleared_by) c
	  JOIN deliveries d ON d.id = c.cleared_by
 ) cleared
 WHERE CASE WHEN $3 IS NULL THEN s.id IN (SELECT service_id FROM counting) ELSE s.id = $3 END`

func scanFacts(row pgx.CollectableRow) (f strikes.Facts, err error) {
	var (
		spread spreadRow
		last   *time.Time
	)
	err = row.Scan(append([]any{&f.Service, &f.Slug, &f.Name, &f.State, &f.Open,
		&f.Clears.Times, &f.Clears.Trials, &f.Clears.Sources, &f.Clears.Addresses, &last}, spread.into()...)...)
	if err != nil {
		return strikes.Facts{}, err
	}
	if last != nil {
		f.Clears.Last = last.UTC()
	}
	f.Sells, f.Spread = catalog.State(f.State).Sells(), spread.spread()
	return f, nil
}

// The calls are the first 100 by their recording.
const strikesSQL = `
WITH chosen AS MATERIALIZED (
	SELECT s.place, st.*
	  FROM unnest($1::uuid[]) WITH ORDINALITY AS s (id, place)
	 CROSS JOIN LATERAL (
		SELECT id, service_id, state, state = 'open' AND opened_at > market_now() - $2::interval AS counts,
		       opened_at, folds_until, last_evidence_at, cleared_at, cleared_by
		  FROM strikes
		 WHERE service_id = s.id AND (NOT $3 OR state = 'open' AND opened_at > market_now() - $2::interval)
		 ORDER BY opened_at DESC, id DESC LIMIT $4
	 ) st
), joined AS MATERIALIZED (
	SELECT c.id AS key, d.recorded_at AS at, d.id, d.trial, ` + networkSQL + ` AS network, d.source, d.payer, d.call_id, d.excused_by
	  FROM chosen c
	  JOIN strike_deliveries sd ON sd.strike_id = c.id
	  JOIN deliveries d ON d.id = sd.delivery_id
), evidence AS (
	SELECT * FROM joined WHERE excused_by IS NULL
), ` + spreadSQL + `
SELECT c.id, c.service_id, c.state, c.counts, c.opened_at, c.folds_until, c.last_evidence_at, c.cleared_at, d.call_id,
       (SELECT (array_agg(e.call_id ORDER BY e.at, e.id))[1:100] FROM joined e WHERE e.key = c.id),
       (SELECT count(*) FROM joined e WHERE e.key = c.id AND e.excused_by IS NOT NULL), ` + spreadColumns + `
  FROM chosen c
  LEFT JOIN spread ON spread.key = c.id
  LEFT JOIN deliveries d ON d.id = c.cleared_by
 ORDER BY c.place, c.opened_at, c.id`

func scanStrike(row pgx.CollectableRow) (s strikes.Strike, err error) {
	var (
		spread    spreadRow
		clearedAt *time.Time
		clearedBy *call.ID
	)
	err = row.Scan(append([]any{&s.ID, &s.Service, &s.State, &s.Counts, &s.OpenedAt, &s.FoldsUntil, &s.LastEvidenceAt, &clearedAt, &clearedBy, &s.Calls, &s.Excused},
		spread.into()...)...)
	if err != nil {
		return strikes.Strike{}, err
	}
	if clearedAt != nil && clearedBy != nil {
		s.ClearedAt, s.ClearedBy = clearedAt.UTC(), *clearedBy
	}
	s.Spread = spread.spread()
	return s, nil
}

// The evidence of a strike may be long: its ends are chosen first, and only they are read whole.
const evidenceSQL = `
SELECT st.id, d.call_id, d.trial, coalesce(d.asked_at, d.recorded_at), d.recorded_at, d.replica, d.source, d.origin, d.payer, d.method, d.path,
       coalesce(d.upstream_status, 0), coalesce(d.latency_us, 0), d.reason, d.detail, sd.error, sd.content_type, sd.snippet, sd.body_sha256, sd.body_bytes,
       sd.body_cut, sd.others_asked, sd.others_failed, d.excused_by IS NOT NULL
  FROM unnest($1::uuid[]) AS st (id)
 CROSS JOIN LATERAL (
	SELECT sd.delivery_id, row_number() OVER (ORDER BY d.recorded_at, d.id) AS nth, count(*) OVER () AS n
	  FROM strike_deliveries sd JOIN deliveries d ON d.id = sd.delivery_id
	 WHERE sd.strike_id = st.id
 ) e
  JOIN strike_deliveries sd ON sd.delivery_id = e.delivery_id
  JOIN deliveries d ON d.id = e.delivery_id
 WHERE e.nth <= $2 OR e.nth > e.n - $2
 ORDER BY st.id, e.nth`

func scanEvidence(row pgx.CollectableRow) (e strikes.Evidence, err error) {
	var (
		replica       *uuid.UUID
		payer         []byte
		latency       int64
		asked, failed *int
	)
	err = row.Scan(&e.Strike, &e.Call, &e.Trial, &e.AskedAt, &e.RecordedAt, &replica, &e.Source, &e.Origin, &payer, &e.Method, &e.Path,
		&e.Status, &latency, &e.Reason, &e.Detail, &e.Error, &e.Said.ContentType, &e.Said.Snippet, &e.Said.SHA256, &e.Said.Bytes, &e.Said.Cut, &asked, &failed, &e.Excused)
	if err != nil {
		return strikes.Evidence{}, err
	}
	if replica != nil {
		e.Replica = *replica
	}
	if asked != nil && failed != nil {
		e.Others = &strikes.Others{Asked: *asked, Failed: *failed}
	}
	e.Network, e.Payer, e.Latency = call.Network(e.Source), common.BytesToAddress(payer), time.Duration(latency)*time.Microsecond
	return e, nil
}

const delistingsSQL = `
SELECT id, at, kind, from_state, strike_limit, strike_window, sources_needed, strikes_open, sources_found, deciding_strike
  FROM delistings WHERE service_id = $1 ORDER BY at DESC, id DESC LIMIT $2`

// delistingsOf returns when strikes took a service off the shelf, the newest first.
func delistingsOf(ctx context.Context, tx pgx.Tx, service uuid.UUID) ([]strikes.Delisting, error) {
	rows, err := tx.Query(ctx, delistingsSQL, service, delistingsMax)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d strikes.Delisting, err error) {
		var kind string
		err = row.Scan(&d.ID, &d.At, &kind, &d.From, &d.Limit, &d.Window, &d.Needed, &d.Open, &d.Sources, &d.Deciding)
		d.Verdict = strikes.Delists
		if kind == strikes.Holds.String() {
			d.Verdict = strikes.Holds
		}
		return d, err
	})
}
