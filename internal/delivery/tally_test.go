package delivery

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres/pgtest"
)

func (s shelf) tallies(t *testing.T) []Tally {
	t.Helper()
	tallies, err := TalliesOf(t.Context(), s.db, s.service.ID)
	if err != nil || len(tallies) != 3 {
		t.Fatalf("%d tallies, %v, want one of each window", len(tallies), err)
	}
	return tallies
}

// from returns the delivery as one of other traffic.
func (d Delivery) from(o call.Origin) Delivery { d.Origin = o; return d }

func (d Delivery) after(latency time.Duration) Delivery { d.Latency = latency; return d }

func TestTalliesOf_CountsWhatAServiceDidWithCallsFromOutside(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, tally := range s.tallies(t) {
		if tally.N() != 0 || !tally.LastServed.IsZero() || tally.Newest {
			t.Errorf("before the first call: %+v", tally)
		}
	}
	for n := range 99 {
		s.record(t, s.trial(t).end(call.OK, "").after(time.Duration(n+1)*time.Millisecond))
	}
	s.record(t, s.asked(t).served().after(time.Second))
	s.record(t, s.asked(t).end(call.RejectedByService, "status 400"))
	s.record(t, s.asked(t).end(call.EgressDown, "no route"))
	// Of others: the market's own, the provider's, and what never reached the service.
	s.record(t, s.trial(t).end(call.OK, "").from(call.Own))
	s.record(t, s.trial(t).end(call.OK, "").from(call.Provider))
	s.refuse(t, s.refusal(call.InputInvalid, "192.0.2.7"))
	s.record(t, s.trial(t).failed().from(call.Unattributed))
	d, _ := s.paid(t)
	s.record(t, d.end(call.InCooldown, ""))

	day := s.tallies(t)[0]
	want := Tally{Window: 24 * time.Hour, Served: 100, Failed: 1, Refused: 1, Resting: 1, Elsewhere: 1, P50: 50 * time.Millisecond,
		P99: 99 * time.Millisecond, LastServed: s.opened}
	if day != want {
		t.Errorf("tally\n%+v, want\n%+v", day, want)
	}
	if share, _ := day.Delivered(); share != 100.0/101 {
		t.Errorf("delivered %v", share)
	}
	all, err := talliesOfAll(t.Context(), s.db)
	want.Window = ScoreWindow
	if err != nil || len(all) != 1 || all[s.service.ID] != want {
		t.Errorf("of all services: %+v, %v", all, err)
	}
}

func TestTalliesOf_AWindowEndsToTheMicrosecond(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.record(t, s.trial(t).end(call.OK, ""))
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
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, latency_us, method, path, source, recorded_at)
SELECT gen_random_uuid(), gen_random_uuid(), true, $1, $2, 'served', 'ok', 'service', 'external', true, market_now(), 1000, 'GET', '/', '192.0.2.1',
       market_now() - n * interval '1 minute'
  FROM generate_series(1, $3) n`

func TestTalliesOf_CountsTheNewestOfVeryManyAndSaysSo(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	if _, err := s.db.Exec(t.Context(), manySQL, s.service.ID, s.endpoint.ID, tallyCalls+100); err != nil {
		t.Fatal(err)
	}
	tallies := s.tallies(t)
	day, month := tallies[0], tallies[2]
	if day.Served != 24*60-1 || day.Newest || month.Served != tallyCalls || !month.Newest {
		t.Errorf("of a day %d, newest only %v; of a month %d, newest only %v", day.Served, day.Newest, month.Served, month.Newest)
	}
	all, err := talliesOfAll(t.Context(), s.db)
	if got := all[s.service.ID]; err != nil || got.Served != scoreCalls || !got.Newest {
		t.Errorf("among all: %+v, %v", got, err)
	}
}

func TestTally_Score_FewCallsDoNotOutrankMany(t *testing.T) {
	t.Parallel()
	order := []Tally{{}, {Failed: 3}, {Served: 1}, {Served: 1, Refused: 100}, {Served: 50, Failed: 50}, {Served: 9, Failed: 1}, {Served: 10}, {Served: 970, Failed: 30}, {Served: 1000}}
	for i, tally := range order[1:] {
		if before := order[i]; tally.Score() < before.Score() {
			t.Errorf("%+v has %d, %+v has %d", tally, tally.Score(), before, before.Score())
		}
	}
	if got := (Tally{Served: 1 << 40}).Score(); got > scoreOne || got < scoreOne-1 {
		t.Errorf("the best score is %d", got)
	}
}

func TestScoreboard_ReadsOnceForAllWhoLookAndKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	now := s.opened
	var troubles []error
	board := NewScoreboard(s.db, func() time.Time { return now }, func(err error) { troubles = append(troubles, err) })
	served := func() int { return board.Tallies(t.Context())[s.service.ID].Served }
	if got := served(); got != 0 {
		t.Errorf("before the first call %d served", got)
	}
	s.record(t, s.trial(t).end(call.OK, ""))
	now = now.Add(scoresAge - time.Nanosecond)
	if got := served(); got != 0 {
		t.Errorf("just before it is old, it was read again: %d served", got)
	}
	now = now.Add(time.Nanosecond)
	if got := served(); got != 1 {
		t.Errorf("it is old and was not read again: %d served", got)
	}
	now = now.Add(scoresAge)
	if _, err := s.db.Exec(t.Context(), `ALTER TABLE services RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	if got := served(); got != 1 || len(troubles) != 1 {
		t.Errorf("after a reading that went wrong: %d served, %d troubles", got, len(troubles))
	}
	if board.Tallies(t.Context()); len(troubles) != 1 {
		t.Error("after one that went wrong it is read again at once")
	}
	if _, there := board.Tallies(t.Context())[uuid.New()]; there {
		t.Error("an unknown service has a tally")
	}
}
