package delivery

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres/pgtest"
)

// What a trial costs its caller is nothing, so a network that provokes failures with trials is refused them as a payer is refused its calls.
func TestRefundPolicy_TrialRest_CountsWhatANetworkCanProvoke(t *testing.T) {
	t.Parallel()
	limit := RefundPolicy{Count: 5, Window: 10 * time.Minute}
	here, neighbour, elsewhere := source, netip.MustParseAddr("192.0.2.200"), netip.MustParseAddr("192.0.3.1")
	another := uuid.Must(uuid.NewV7())
	as := func(o call.Origin) func(Delivery) Delivery {
		return func(d Delivery) Delivery { d.Origin = o; return d.failed() }
	}
	for name, tt := range map[string]struct {
		end      func(Delivery) Delivery
		n        int
		from     netip.Addr
		endpoint *uuid.UUID // nil: the one that was tried
		want     time.Duration
	}{
		"one failure below the count":      {Delivery.failed, 4, here, nil, 0},
		"failures of the service":          {Delivery.failed, 5, here, nil, limit.Window},
		"seen from the same network":       {Delivery.failed, 5, neighbour, nil, limit.Window},
		"seen from another network":        {Delivery.failed, 5, elsewhere, nil, 0},
		"seen at another endpoint":         {Delivery.failed, 5, here, &another, 0},
		"what the service refused":         {func(d Delivery) Delivery { return d.end(call.RejectedByService, "") }, 5, here, nil, limit.Window},
		"failures of ours":                 {func(d Delivery) Delivery { return d.end(call.EgressDown, "") }, 5, here, nil, 0},
		"answers that were served":         {Delivery.served, 5, here, nil, 0},
		"callers who cannot be told apart": {as(call.Unattributed), 5, here, nil, limit.Window},
		"our own calls, which move none":   {as(call.Own), 5, here, nil, 0},
		"the provider's, likewise":         {as(call.Provider), 5, here, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			for range tt.n {
				s.record(t, tt.end(s.trial(t)))
			}
			endpoint := s.endpoint.ID
			if tt.endpoint != nil {
				endpoint = *tt.endpoint
			}
			if got, err := limit.trialRest(t.Context(), s.db, s.service.ID, endpoint, tt.from); err != nil || got != tt.want {
				t.Errorf("refused for %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// However much a service is tried, who has provoked nothing costs one look at an index that has failed trials alone.
func TestRefundPolicy_TrialRest_WhoProvokedNothingCostsOneLook(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.many(t, true, 1000)
	s.write(t, `ANALYZE deliveries`)
	var plan string
	err := s.db.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+provokedSQL, s.endpoint.ID, call.Network(source), refundRestMax, 5).Scan(&plan)
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(plan), &plans); err != nil {
		t.Fatal(err)
	}
	scans := plans[0].Plan.scansOf("deliveries")
	if len(scans) != 1 || scans[0].Index != "deliveries_failed_trials" || scans[0].Rows > 5 || scans[0].Removed > 0 {
		t.Errorf("scans %+v of\n%s", scans, plan)
	}
}

func TestRefundPolicy_TrialRest_PaidCallsAreNoTrialsAndARestPasses(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	limit := RefundPolicy{Count: 2, Window: time.Hour}
	is := func(when string, want time.Duration) {
		t.Helper()
		if got, err := limit.trialRest(t.Context(), s.db, s.service.ID, s.endpoint.ID, source); err != nil || got != want {
			t.Errorf("%s: refused for %s, %v; want %s", when, got, err, want)
		}
	}
	for range limit.Count {
		s.fail(t)
		pgtest.Shift(t, s.db, 2*rest)
	}
	is("after paid calls that failed", 0)
	for range limit.Count {
		s.record(t, s.trial(t).failed())
	}
	pgtest.Shift(t, s.db, 15*time.Minute)
	is("a quarter of an hour after trials that did", 45*time.Minute)
	pgtest.Shift(t, s.db, 45*time.Minute)
	is("an hour after", 0)
}
