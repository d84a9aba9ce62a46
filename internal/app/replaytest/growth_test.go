package replaytest

import (
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"market/internal/app/apptest"
)

func growthIncidents() []incident {
	const title = "A cap that was a growth ceiling"
	return []incident{
		{title, "traffic grows by 40 % a week for a month", "a fixed daily cap, made as a budget, became the limit of growth",
			"the guard follows normal use and is never met", growth},
		{title, "a loop makes 50 times the calls of the busiest day", "a cap high enough to let growth through would have let the loop through as well",
			"it is stopped the same day at three times the busiest day, with one mail; where the demand is real and stays, the next day takes three times as much", loop},
	}
}

// guarded is how a facilitator is configured whose use is watched: a floor that no traffic of these tests reaches by itself.
func guarded() map[string]any {
	return map[string]any{"metered": true, "runs_out": "prepaid", "unit_usd": "0.001", "guard": map[string]any{"floor": 20, "surge": 3}}
}

// spend makes calls until the facilitator was asked so often or somebody is turned away, and returns how many were served and how many turned away.
func (m *market) spend(t *testing.T, calls int) (served, away int) {
	t.Helper()
	var ok, no atomic.Int64
	var group errgroup.Group
	group.SetLimit(4)
	for i := range calls {
		w := m.replicas[i%len(m.replicas)]
		group.Go(func() error {
			a := w.Send(t, w.At(t, m.ask), m.sign(t, 1)[0]) // signed now: a payment does not live as long as a thousand calls
			if a.Status == http.StatusOK {
				ok.Add(1)
				return nil
			}
			turnedAway(t, "a call beyond the guard", a)
			no.Add(1)
			return nil
		})
	}
	_ = group.Wait()
	return int(ok.Load()), int(no.Load())
}

// settled waits until what the calls of the day did not need is given back, and returns what the day has used.
func (m *market) settled(t *testing.T, served int) (used int) {
	t.Helper()
	const todaySQL = `SELECT coalesce(sum(used), 0) FROM source_days WHERE source = $1 AND day = (market_now() AT TIME ZONE 'UTC')::date`
	apptest.Eventually(t, "a served call takes one unit", func() bool {
		if err := m.DB.QueryRow(t.Context(), todaySQL, hosted).Scan(&used); err != nil {
			t.Fatal(err)
		}
		return used == served
	})
	return used
}

func growth(t *testing.T) string {
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	m := newMarket(t, guarded(), 1<<12, h)
	whole, base := size(t, 6, 30), float64(size(t, 12, usual/2))
	first, last := 0, 0
	for day := range whole {
		calls := int(math.Round(base * math.Pow(1.4, float64(day)/7)))
		served, away := m.spend(t, calls)
		if away > 0 || served != calls {
			t.Fatalf("day %d: %d of %d calls were turned away", day+1, away, calls)
		}
		m.settled(t, served)
		if day == 0 {
			first = calls
		}
		last = calls
		m.Shift(t, 24*time.Hour)
		m.offers(t, true)
	}
	if n := len(m.inbox.Mail.Mails()); n != 0 {
		t.Errorf("%d mails about growth: %q", n, m.subjects())
	}
	return fmt.Sprintf("%d days, from %d to %d calls a day, none turned away", whole, first, last)
}

func loop(t *testing.T) string {
	const surge, busiest = 3, 20
	const limit = surge * busiest
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	m := newMarket(t, guarded(), 1<<12, h)
	if _, err := m.DB.Exec(t.Context(), `UPDATE source_days SET used = $1`, busiest); err != nil {
		t.Fatal(err)
	}
	m.Shift(t, 24*time.Hour) // a day without a call, and what the days before used is read again
	m.offers(t, true)
	attempts := size(t, 2*limit, 50*busiest)
	// A call has two units until what it did not need is given back, so the loop goes on when that is done: what it gets does not depend on how fast it is.
	served, away := 0, 0
	for range 4 {
		got, refused := m.spend(t, attempts/4)
		served, away = served+got, away+refused
		m.settled(t, served)
	}
	if served > limit || served < limit*3/4 || int(h.Asked.Load()) != served {
		t.Errorf("the loop got %d calls of %d, and the facilitator was asked %d times; want no more than %d, and most of them", served, attempts, h.Asked.Load(), limit)
	}
	apptest.Eventually(t, "the operator is told", func() bool { return m.mails("guard is reached") == 1 })

	// The demand is real: it is there the next day, too.
	m.Shift(t, 24*time.Hour)
	m.offers(t, true)
	before := int(h.Asked.Load())
	more, _ := m.spend(t, size(t, limit+limit/2, 2*surge*limit))
	if more > surge*limit || more <= limit || int(h.Asked.Load())-before != more {
		t.Errorf("the next day served %d calls; want more than %d, and no more than %d", more, limit, surge*limit)
	}
	return fmt.Sprintf("busiest day %d; %d attempts: %d served, %d turned away; the next day: %d served", busiest, attempts, served, away, more)
}
