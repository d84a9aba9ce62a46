package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

// A database is the market as it runs: the recorder, a guard for each replica, and Postgres.
type database struct {
	t        *testing.T
	db       *pgxpool.Pool
	policy   strikes.Policy
	recorder *delivery.Recorder
	guards   [replicas]*delivery.Guard
	ids      [replicas]uuid.UUID
	services []uuid.UUID
	places   map[uuid.UUID]int // of services
	endpoint []uuid.UUID
	now      time.Duration
	since    int // calls since the planner was told of the tables
}

func newDatabase(t *testing.T, all []*service, p strikes.Policy) *database {
	t.Helper()
	d := &database{t: t, db: pgtest.New(t), policy: p, places: map[uuid.UUID]int{}}
	if start := pgtest.Freeze(t, d.db); !start.Equal(beginning) {
		t.Fatalf("the clock of the database stands at %s", start)
	}
	d.recorder = delivery.NewRecorder(d.db, nil, p, rest, time.Hour) // no call here is paid for, so no refund is owed
	review := delivery.NewReview(d.db, p)
	for i := range d.guards {
		d.ids[i] = uuid.Must(uuid.NewV7())
		d.guards[i] = delivery.NewGuard(d.db, d.ids[i], review)
	}
	err := pgx.BeginFunc(t.Context(), d.db, func(tx pgx.Tx) error {
		for i, s := range all {
			draft, err := catalog.ParseDraft(fmt.Appendf(nil, `{"slug":%q,"name":"Service","base_url":"https://service-%d.provider-%d.example",
				"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`, slug(i), i, s.provider), catalog.Rules{})
			if err != nil {
				return err
			}
			made, err := catalog.Store{}.Create(t.Context(), tx, draft)
			if err != nil {
				return err
			}
			d.services, d.endpoint = append(d.services, made.ID), append(d.endpoint, made.Endpoints[0].ID)
			d.places[made.ID] = i
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// instant moves the time of the market.
func (d *database) instant(now time.Duration) {
	d.t.Helper()
	pgtest.Shift(d.t, d.db, now-d.now)
	d.now = now
}

// atOnce is how many calls are recorded at one time.
const atOnce = 8

// record records calls, all at once.
func (d *database) record(ends []end) {
	d.t.Helper()
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, e := range ends {
		all.Go(func() error {
			if refusedBefore(e.reason) {
				_, err := d.recorder.Refuse(d.t.Context(), d.delivery(e))
				return err
			}
			return d.recorder.Record(d.t.Context(), d.delivery(e))
		})
	}
	if err := all.Wait(); err != nil {
		d.t.Fatal(err)
	}
	if d.since += len(ends); d.since >= analyzeEach {
		d.since = 0
		d.analyze()
	}
}

// analyzeEach is after how many calls the planner is told what the tables hold: the servers of tests do not find that out by themselves.
const analyzeEach = 20_000

func (d *database) analyze() {
	d.t.Helper()
	if _, err := d.db.Exec(d.t.Context(), `VACUUM (ANALYZE) deliveries, strikes, strike_deliveries, cooldowns, services, market_clock, outages`); err != nil {
		d.t.Fatal(err)
	}
}

func (d *database) delivery(e end) delivery.Delivery {
	out := delivery.Delivery{
		ID: uuid.Must(uuid.NewV7()), Call: call.NewID(), Trial: true, Service: d.services[e.service], Endpoint: d.endpoint[e.service],
		Outcome: e.row.Outcome, Reason: e.reason, Party: e.row.Party, Origin: e.caller.origin(), RetryAfter: e.wait,
		Method: "GET", Path: "/", Source: e.source, Replica: d.ids[e.replica],
	}
	if e.wasAsked() {
		out.AskedAt, out.Latency = moment(e.asked), e.at-e.asked
	}
	return out
}

// tick is a look of some replicas, one after another.
func (d *database) tick(c *conditions, now time.Duration, from, to int) {
	d.t.Helper()
	for i, g := range d.guards[from:to] {
		if _, err := g.Tick(d.t.Context(), soundings(c, now, from+i)); err != nil {
			d.t.Fatal(err)
		}
	}
}

const sightsSQL = `
SELECT s.state, c.until, st.*, coalesce(latest.opened_at, $3), coalesce(latest.folds_until, $3), coalesce(latest.last_evidence_at, $3),
       (SELECT count(*) FROM strike_deliveries WHERE strike_id = latest.id)
  FROM unnest($1::uuid[]) WITH ORDINALITY AS w (id, place)
  JOIN services s ON s.id = w.id
  LEFT JOIN cooldowns c ON c.service_id = s.id
 CROSS JOIN LATERAL (
	SELECT count(*), count(*) FILTER (WHERE state = 'cleared'), count(*) FILTER (WHERE state = 'voided'),
	       count(*) FILTER (WHERE state = 'open' AND opened_at > market_now() - $2::interval)
	  FROM strikes WHERE service_id = s.id) st
  LEFT JOIN LATERAL (
	SELECT id, opened_at, folds_until, last_evidence_at FROM strikes WHERE service_id = s.id ORDER BY opened_at DESC, id DESC LIMIT 1) latest ON true
 ORDER BY w.place`

// sights reads what can be seen of services.
func (d *database) sights(of []int) []sight {
	d.t.Helper()
	ids := make([]uuid.UUID, len(of))
	for i, service := range of {
		ids[i] = d.services[service]
	}
	rows, err := d.db.Query(d.t.Context(), sightsSQL, ids, d.policy.Window, beginning)
	if err != nil {
		d.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s sight, err error) {
		var (
			until                 *time.Time
			opened, folds, newest time.Time
		)
		err = row.Scan(&s.State, &until, &s.Strikes, &s.Cleared, &s.Voided, &s.Counting, &opened, &folds, &newest, &s.Evidence)
		if until != nil {
			s.Until = until.Sub(beginning)
		}
		s.Opened, s.Folds, s.Last = opened.Sub(beginning), folds.Sub(beginning), newest.Sub(beginning)
		return s, err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

const ledgersSQL = `
SELECT service_id, count(*), count(*) FILTER (WHERE party = 'platform'), count(excused_by) FROM deliveries WHERE outcome <> 'refused' GROUP BY service_id`

// ledgers counts the calls of every service.
func (d *database) ledgers() []ledger {
	d.t.Helper()
	all := make([]ledger, len(d.services))
	rows, err := d.db.Query(d.t.Context(), ledgersSQL)
	if err != nil {
		d.t.Fatal(err)
	}
	var (
		of uuid.UUID
		l  ledger
	)
	_, err = pgx.ForEachRow(rows, []any{&of, &l.Calls, &l.Ours, &l.Excused}, func() error {
		all[d.places[of]] = l
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

const outagesSQL = `
SELECT replica, cause, began_at, reaches_back_to, held_at, ended_at FROM outages ORDER BY id`

// outages reads what was seen of outages of ours.
func (d *database) outages() []trip {
	d.t.Helper()
	rows, err := d.db.Query(d.t.Context(), outagesSQL)
	if err != nil {
		d.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o trip, err error) {
		var (
			replica *uuid.UUID
			ended   *time.Time
		)
		err = row.Scan(&replica, &o.state.Cause, &o.state.Began, &o.state.Reaches, &o.state.Held, &ended)
		o.replica = fleet
		for i, id := range d.ids {
			if replica != nil && *replica == id {
				o.replica = i
			}
		}
		for _, at := range []*time.Time{&o.state.Began, &o.state.Reaches, &o.state.Held} {
			*at = at.UTC()
		}
		if ended != nil {
			o.state.Ended = ended.UTC()
		}
		return o, err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}
