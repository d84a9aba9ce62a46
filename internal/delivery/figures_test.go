package delivery

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
)

func (s shelf) measured(t *testing.T, callsMax int) []Measured {
	t.Helper()
	all, err := measuredOf(t.Context(), s.db, s.service.ID, callsMax)
	if err != nil || len(all) != len(tallyWindows) {
		t.Fatalf("%d windows, %v", len(all), err)
	}
	return all
}

// another adds an endpoint to the shelf's service.
func (s shelf) another(t *testing.T) *catalog.Endpoint {
	t.Helper()
	draft, err := catalog.ParseEndpointDraft([]byte(`{"method":"GET","path":"/more","price_usd":"0.01"}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var made *catalog.Endpoint
	err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		made, err = catalog.Store{}.AddEndpoint(t.Context(), tx, s.service.ID, draft, catalog.AdminToken)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestMeasured_CountsEveryDeliveryByEndpointAndWhoseItWasAndHowItEnded(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	more := s.another(t)
	at := func(d Delivery) Delivery { d.Endpoint = more.ID; return d }
	for n := range 100 {
		s.record(t, s.asked(t).served().after(time.Duration(n+1)*time.Millisecond))
	}
	s.record(t, at(s.asked(t).served().from(call.Unattributed).after(time.Second)))
	s.record(t, at(s.asked(t).failed().after(2*time.Second)))
	pgtest.Shift(t, s.db, rest)
	s.record(t, s.asked(t).failed().after(4*time.Second))
	d, _ := s.paid(t)
	s.record(t, d.end(call.InCooldown, ""))
	pgtest.Shift(t, s.db, rest)
	s.record(t, s.asked(t).end(call.EgressDown, "no route").after(time.Hour)) // not the service's doing: its time is no latency of the service
	s.refuse(t, s.refusal(call.InputInvalid, "192.0.2.7"))
	s.record(t, s.asked(t).failed().from(call.Own).after(time.Minute))
	s.record(t, s.asked(t).served().from(call.Provider))
	s.record(t, s.trial(t).end(call.RejectedByService, "status 400"))
	refused := s.refusal(call.InputEmpty, "192.0.2.8")
	refused.Trial, refused.Endpoint = true, more.ID
	s.refuse(t, refused)

	ok := func(n int) Count { return Count{call.Served, call.OK, call.Service, n} }
	broke := func(n int) Count { return Count{call.Failed, call.Upstream5xx, call.Service, n} }
	rejected := Count{call.Refused, call.RejectedByService, call.Caller, 1}
	empty := Count{call.Refused, call.InputEmpty, call.Caller, 1}
	ofFirst := Traffic{Class: ClassCounting, Served: Latency{100, 50 * time.Millisecond, 99 * time.Millisecond}, Failed: Latency{1, 4 * time.Second, 4 * time.Second},
		Counts: []Count{ok(100), {call.CooldownRefused, call.InCooldown, call.Platform, 1}, {call.Failed, call.EgressDown, call.Platform, 1}, broke(1),
			{call.Refused, call.InputInvalid, call.Caller, 1}}}
	ofAll := ofFirst
	ofAll.Served, ofAll.Failed = Latency{101, 51 * time.Millisecond, 100 * time.Millisecond}, Latency{2, 2 * time.Second, 4 * time.Second}
	ofAll.Counts = []Count{ok(101), broke(2), ofFirst.Counts[1], ofFirst.Counts[2], ofFirst.Counts[4]}
	ours := Traffic{Class: ClassOwn, Failed: Latency{1, time.Minute, time.Minute}, Counts: []Count{broke(1)}}
	theirs := Traffic{Class: ClassProvider, Served: Latency{N: 1}, Counts: []Count{ok(1)}}
	want := Measured{
		Traffic: []Traffic{ofAll, ours, theirs, {Trial: true, Class: ClassCounting, Counts: []Count{empty, rejected}}},
		Endpoints: []MeasuredEndpoint{
			{s.endpoint.ID, "GET", "/", false, []Traffic{ofFirst, ours, theirs, {Trial: true, Class: ClassCounting, Counts: []Count{rejected}}}},
			{more.ID, "GET", "/more", false, []Traffic{
				{Class: ClassCounting, Served: Latency{1, time.Second, time.Second}, Failed: Latency{1, 2 * time.Second, 2 * time.Second}, Counts: []Count{broke(1), ok(1)}},
				{Trial: true, Class: ClassCounting, Counts: []Count{empty}}}},
		},
	}
	for i, got := range s.measured(t, MeasuredCalls) {
		want.Window = tallyWindows[i]
		if !reflect.DeepEqual(got, want) {
			t.Errorf("measured\n%+v, want\n%+v", got, want)
		}
	}
	// What is enforced is counted from strikes: the two failures that count are two, whatever else failed.
	if got, err := s.recorder.Enforced(t.Context(), s.db, s.service.ID); err != nil || got != (Enforced{2, policy}) {
		t.Errorf("enforced: %+v, %v", got, err)
	}
}

// A failure of the same incident is measured and does not count again; one that left the strikes' window is measured for longer.
func TestMeasured_IsNotWhatIsEnforced(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	one, two := s.asked(t).failed(), s.asked(t).failed()
	s.record(t, one)
	s.record(t, two)
	for _, step := range []struct {
		wait        time.Duration
		day, strike int
	}{{0, 2, 1}, {policy.Window - time.Microsecond, 2, 1}, {time.Microsecond, 0, 0}} {
		pgtest.Shift(t, s.db, step.wait)
		got, err := s.recorder.Enforced(t.Context(), s.db, s.service.ID)
		if err != nil || got.Open != step.strike {
			t.Errorf("after another %s: %+v, %v, want %d strikes", step.wait, got, err, step.strike)
		}
		day, week, measured := 0, 0, s.measured(t, 10)
		for _, traffic := range measured[0].Traffic {
			day += traffic.N()
		}
		for _, traffic := range measured[1].Traffic {
			week += traffic.N()
		}
		if day != step.day || week != 2 {
			t.Errorf("after another %s: %d measured in a day and %d in a week, want %d and 2", step.wait, day, week, step.day)
		}
	}
}

func TestMeasured_OfWhatIsRetiredOnlyWhatHadDeliveries(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	more := s.another(t)
	if day := s.measured(t, 10)[0]; len(day.Traffic) != 0 || len(day.Endpoints) != 2 || day.Endpoints[0].Retired || len(day.Endpoints[1].Traffic) != 0 {
		t.Errorf("before the first call: %+v", day)
	}
	s.record(t, s.asked(t).served())
	s.write(t, `UPDATE endpoints SET retired_at = market_now() WHERE service_id = $1`, s.service.ID)
	day := s.measured(t, 10)[0]
	if len(day.Endpoints) != 1 || day.Endpoints[0].ID == more.ID || !day.Endpoints[0].Retired || day.Endpoints[0].Traffic[0].N() != 1 {
		t.Errorf("endpoints %+v", day.Endpoints)
	}
}

const measuredManySQL = `
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, latency_us, method, path, source, recorded_at)
SELECT gen_random_uuid(), gen_random_uuid(), $4, $1, $2, $6, $7, 'caller', $5, $8, CASE WHEN $8 THEN market_now() END, 1000, 'GET', '/', '192.0.2.1',
       market_now() - n * interval '1 minute'
  FROM generate_series(1, $3) n`

// parts are all that a service's deliveries are counted in.
func (s shelf) parts(t *testing.T, each int) {
	t.Helper()
	for _, trial := range []bool{false, true} {
		for _, origin := range call.Origins() {
			s.write(t, measuredManySQL, s.service.ID, s.endpoint.ID, each, trial, origin, call.Refused, call.InputInvalid, false)
		}
		s.write(t, measuredManySQL, s.service.ID, s.endpoint.ID, each, trial, call.External, call.Refused, call.RejectedByService, true)
	}
}

// However many deliveries somebody makes, trials, refusals or calls of our own, none of the others is pushed out of what is counted.
func TestMeasured_NothingPushesAnythingElseOut(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const most, more = 20, 5
	s.parts(t, most)
	s.rewrite(t, "deliveries", `DELETE FROM deliveries WHERE asked AND NOT trial`) // of the calls that reached it
	s.record(t, s.asked(t).served())
	for _, traffic := range s.measured(t, most)[2].Traffic {
		if !traffic.Since.IsZero() || traffic.N() < most {
			t.Errorf("as many as are counted: %+v", traffic)
		}
	}
	s.parts(t, more)
	s.rewrite(t, "deliveries", `DELETE FROM deliveries WHERE asked AND NOT trial AND party = 'caller'`)
	for _, m := range s.measured(t, most) {
		if len(m.Traffic) != 6 {
			t.Fatalf("traffic of %d kinds: %+v", len(m.Traffic), m.Traffic)
		}
		// Of those that count, refusals are two parts: of external and of unattributed callers.
		if paid := m.Traffic[0]; paid.Class != ClassCounting || paid.N() != 2*most+1 || paid.Counts[1] != (Count{call.Served, call.OK, call.Service, 1}) {
			t.Errorf("paid calls from outside: %+v", paid)
		}
		for _, traffic := range append(m.Traffic, m.Endpoints[0].Traffic...) {
			if !traffic.Since.Equal(s.opened.Add(-(most - more) * time.Minute)) {
				t.Errorf("%s, trial %v: all are counted since %s", traffic.Class, traffic.Trial, traffic.Since)
			}
			want := map[Class]int{ClassCounting: 3 * most, ClassOwn: most, ClassProvider: most}[traffic.Class]
			if traffic.N() != want && (traffic.Trial || traffic.Class != ClassCounting) {
				t.Errorf("%s, trial %v: %d, want %d", traffic.Class, traffic.Trial, traffic.N(), want)
			}
		}
	}
}

// However busy a service is, no more of its rows are read than are counted, and two of each part to know that there are more.
func TestMeasured_ReadsNoMoreRowsThanItCounts(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const most = 100
	s.parts(t, 10*most)
	s.write(t, `ANALYZE deliveries`)
	var plan string
	err := bounded(t.Context(), s.db, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+measuredSQL, s.service.ID, tallyWindows, most, call.Origins()).Scan(&plan)
	})
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(plan), &plans); err != nil {
		t.Fatal(err)
	}
	scans := plans[0].Plan.scansOf("deliveries")
	if len(scans) != 2 {
		t.Fatalf("%d scans of deliveries in %s", len(scans), plan)
	}
	for i, index := range []string{"deliveries_of_paid_record", "deliveries_beside_record"} {
		// Of the rows, the plan says how many a loop had on average.
		if scan := scans[i]; scan.Rows > most+2 || scan.Removed > 0 || scan.Index != index || scan.Type != "Index Only Scan" {
			t.Errorf("%s by %q reads %v rows and throws %v away, for %d that are counted", scan.Type, scan.Index, scan.Rows, scan.Removed, most)
		}
	}
}

func TestClassOf_EveryOriginHasOneAndOnlyWhatCountsIsCounting(t *testing.T) {
	t.Parallel()
	for _, o := range call.Origins() {
		if got := ClassOf(o) == ClassCounting; got != o.Counts() {
			t.Errorf("%s is of class %s", o, ClassOf(o))
		}
	}
	if ClassOf(call.Own) == ClassOf(call.Provider) {
		t.Error("own and provider traffic are told apart")
	}
}

// Many who look cost one reading, as with the record.
func TestScoreboard_FiguresAreReadOnceForAllWhoLook(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	now := s.opened
	board := NewScoreboard(s.db, func() time.Time { return now }, func(err error) { t.Error(err) })
	look := func(service uuid.UUID) int {
		for {
			all, at := board.Figures(t.Context(), service)
			if t.Context().Err() != nil {
				t.Fatal("they were not read")
			}
			if !at.IsZero() { // who looks waits for a reading, and not for long
				return len(all[0].Traffic)
			}
		}
	}
	if look(s.service.ID) != 0 || look(uuid.New()) != 0 {
		t.Error("something was measured before the first call")
	}
	s.record(t, s.asked(t).served())
	now = now.Add(sharedAge - time.Nanosecond)
	if look(s.service.ID) != 0 {
		t.Error("read again before it is old")
	}
	now = now.Add(time.Nanosecond)
	for look(s.service.ID) != 1 && t.Context().Err() == nil {
	}
}
