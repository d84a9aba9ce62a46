package delivery

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres/pgtest"
)

func (s shelf) tallies(t *testing.T) []Tally {
	t.Helper()
	tallies, err := talliesOfOne(t.Context(), s.db, s.service.ID)
	if err != nil || len(tallies) != 3 {
		t.Fatalf("%d tallies, %v, want one of each window", len(tallies), err)
	}
	return tallies
}

// from returns the delivery as one of other traffic.
func (d Delivery) from(o call.Origin) Delivery { d.Origin = o; return d }

func (d Delivery) after(latency time.Duration) Delivery { d.Latency = latency; return d }

func (d Delivery) by(payer byte) Delivery { d.Payer = common.Address{payer}; return d }

func TestTallies_CountWhatAServiceDidWithPaidCallsFromOutside(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, tally := range s.tallies(t) {
		if tally.N() != 0 || !tally.LastServed.IsZero() || tally.Newest() {
			t.Errorf("before the first call: %+v", tally)
		}
	}
	for n := range 99 {
		s.record(t, s.asked(t).served().by(byte(n%7)).after(time.Duration(n+1)*time.Millisecond))
	}
	s.record(t, s.asked(t).served().after(time.Second))
	s.record(t, s.asked(t).end(call.RejectedByService, "status 400").by(100))
	s.record(t, s.asked(t).end(call.EgressDown, "no route").by(101))
	left := s.asked(t).served().by(102).after(time.Hour)
	left.Reason, left.Party = call.CallerLeft, call.Caller
	s.record(t, left)
	// Trials, of which anybody may make as many as there are, stand apart.
	s.record(t, s.trial(t).end(call.OK, "").after(time.Hour))
	s.record(t, s.trial(t).end(call.RejectedByService, "status 400"))
	// Of others: the market's own, the provider's, and what never reached the service.
	s.record(t, s.asked(t).served().from(call.Own))
	s.record(t, s.asked(t).served().from(call.Provider))
	s.record(t, s.trial(t).end(call.OK, "").from(call.Own))
	s.refuse(t, s.refusal(call.InputInvalid, "192.0.2.7"))
	s.record(t, s.asked(t).failed().from(call.Unattributed))
	d, _ := s.paid(t)
	s.record(t, d.end(call.InCooldown, ""))

	day := s.tallies(t)[0]
	want := Tally{Window: 24 * time.Hour, Served: 100, Failed: 1, Refused: 1, Resting: 1, Elsewhere: 1, Left: 1, Payers: 8,
		P50: 50 * time.Millisecond, P99: 99 * time.Millisecond, LastServed: s.opened, Trials: 2, TrialsServed: 1}
	if day != want {
		t.Errorf("tally\n%+v, want\n%+v", day, want)
	}
	if share, _ := day.Delivered(); share != 100.0/101 {
		t.Errorf("delivered %v", share)
	}
	// A service that has left the shelf keeps its record.
	s.write(t, `UPDATE services SET state = 'retired', state_since = market_now() WHERE id = $1`, s.service.ID)
	all, err := talliesOfAll(t.Context(), s.db)
	want.Window = ScoreWindow
	if err != nil || len(all) != 1 || all[s.service.ID] != want {
		t.Errorf("of all services: %+v, %v", all, err)
	}
}

// Nobody gets a record, or a place in front of others, with calls that cost nothing.
func TestTallies_TrialsMakeNoRecord(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.many(t, true, ScoreCalls+1)
	s.record(t, s.asked(t).served())
	s.record(t, s.asked(t).failed())
	all, err := talliesOfAll(t.Context(), s.db)
	got := all[s.service.ID]
	if err != nil || got.Served != 1 || got.Failed != 1 || got.Trials != ScoreCalls || got.Newest() {
		t.Errorf("%+v, %v", got, err)
	}
	if want := (Tally{Served: 1, Failed: 1, Payers: 1}).Score(); got.Score() != want {
		t.Errorf("the score is %d, without trials it is %d", got.Score(), want)
	}
}

func TestTallies_AWindowEndsToTheMicrosecond(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.record(t, s.asked(t).served())
	for window, length := range tallyWindows {
		pgtest.Shift(t, s.db, length-time.Microsecond-s.shifted(t))
		if got := s.tallies(t)[window].Served; got != 1 {
			t.Errorf("just inside %s: %d served", length, got)
		}
		pgtest.Shift(t, s.db, time.Microsecond)
		if got := s.tallies(t)[window].Served; got != 0 {
			t.Errorf("at the end of %s: %d served", length, got)
		}
	}
}

// shifted is how far market time is from where it was opened.
func (s shelf) shifted(t *testing.T) time.Duration {
	t.Helper()
	var now time.Time
	if err := s.db.QueryRow(t.Context(), `SELECT market_now()`).Scan(&now); err != nil {
		t.Fatal(err)
	}
	return now.Sub(s.opened)
}

const manySQL = `
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, latency_us, method, path, source, recorded_at,
                        payer)
SELECT gen_random_uuid(), gen_random_uuid(), $4, $1, $2, 'served', 'ok', 'service', 'external', true, market_now(), 1000, 'GET', '/', '192.0.2.1',
       market_now() - n * interval '1 minute', CASE WHEN NOT $4 THEN decode(repeat('ca', 20), 'hex') END
  FROM generate_series(1, $3) n`

// many writes so many served calls, one a minute.
func (s shelf) many(t *testing.T, trial bool, n int) {
	t.Helper()
	s.write(t, manySQL, s.service.ID, s.endpoint.ID, n, trial)
}

func (s shelf) write(t *testing.T, sql string, arguments ...any) {
	t.Helper()
	if _, err := s.db.Exec(t.Context(), sql, arguments...); err != nil {
		t.Fatal(err)
	}
}

func TestTallies_CountTheNewestOfVeryManyAndSaySo(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.many(t, false, TallyCalls)
	if month := s.tallies(t)[2]; month.Served != TallyCalls || month.Newest() {
		t.Errorf("as many as are counted: %d, newest only %v", month.Served, month.Newest())
	}
	s.write(t, manySQL, s.service.ID, s.endpoint.ID, 1, false)
	tallies := s.tallies(t)
	day, month := tallies[0], tallies[2]
	// The second call of the first minute pushes out the oldest.
	if day.Served != 24*60 || day.Newest() || month.Served != TallyCalls || !month.Since.Equal(s.opened.Add(-(TallyCalls-1)*time.Minute)) {
		t.Errorf("of a day %d, since %s; of a month %d, since %s", day.Served, day.Since, month.Served, month.Since)
	}
	all, err := talliesOfAll(t.Context(), s.db)
	if got := all[s.service.ID]; err != nil || got.Served != ScoreCalls || !got.Newest() {
		t.Errorf("among all: %+v, %v", got, err)
	}
}

// However busy a service is, no more of its rows are read than are counted, and two to know that there are more.
func TestTallies_ReadNoMoreRowsThanTheyCount(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.many(t, false, 4*ScoreCalls)
	s.many(t, true, 4*ScoreCalls)
	s.write(t, `ANALYZE deliveries`)
	var plan string
	err := bounded(t.Context(), s.db, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+talliesSQL, []uuid.UUID{s.service.ID}, tallyWindows, ScoreCalls).Scan(&plan)
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
	for _, scan := range scans {
		if scan.Rows > ScoreCalls+2 || scan.Removed > 0 || scan.Index != "deliveries_of_paid_record" || scan.Type != "Index Only Scan" {
			t.Errorf("%s by %q reads %v rows and throws %v away, for %d that are counted", scan.Type, scan.Index, scan.Rows, scan.Removed, ScoreCalls)
		}
	}
}

type planNode struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Plans    []planNode
}

func (n planNode) scansOf(relation string) []planNode {
	var all []planNode
	if n.Relation == relation {
		all = append(all, n)
	}
	for _, below := range n.Plans {
		all = append(all, below.scansOf(relation)...)
	}
	return all
}

func TestScoreCallsOf_AllServicesTogetherAreBounded(t *testing.T) {
	t.Parallel()
	for services, want := range map[int]int{0: ScoreCalls, 1: ScoreCalls, 200: ScoreCalls, 400: 500, 4_000: scoreCallsMin, 1_000_000: scoreCallsMin} {
		if got := scoreCallsOf(services); got != want {
			t.Errorf("of each of %d services %d calls, want %d", services, got, want)
		}
	}
}

func TestTally_Score_FewCallsAndFewPayersDoNotOutrankMany(t *testing.T) {
	t.Parallel()
	order := []Tally{{}, {Failed: 3, Payers: 3}, {Served: 1, Payers: 1}, {Served: 1, Refused: 100, Trials: 900, TrialsServed: 900, Payers: 1}, {Served: 50, Failed: 50, Payers: 50},
		{Served: 9, Failed: 1, Payers: 1}, {Served: 10, Payers: 1}, {Served: 5000, Payers: 1}, {Served: 970, Failed: 30, Payers: 100}, {Served: 1000, Payers: 100}}
	for i, tally := range order[1:] {
		if before := order[i]; tally.Score() < before.Score() {
			t.Errorf("%+v has %d, %+v has %d", tally, tally.Score(), before, before.Score())
		}
	}
	if got := (Tally{Served: 1 << 40, Payers: 1 << 40}).Score(); got > scoreOne || got < scoreOne-1 {
		t.Errorf("the best score is %d", got)
	}
}
