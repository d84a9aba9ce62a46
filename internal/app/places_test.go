package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/capacity"
	"market/internal/chain"
)

// limit declares a capacity of a service that is listed, for this program's next request.
func limit(t *testing.T, w *apptest.World, slug string, l capacity.Limit) {
	t.Helper()
	declared := map[string]any{"requests_per_second": nil, "concurrency": nil}
	if l.Rate > 0 {
		declared["requests_per_second"] = json.Number(l.Rate.String())
	}
	if l.Places > 0 {
		declared["concurrency"] = l.Places
	}
	if status, answer := w.Admin(t, http.MethodPatch, "/api/v1/services/"+slug, map[string]any{"capacity": declared}); status != http.StatusOK {
		t.Fatalf("declare a capacity of %s: %d %v", slug, status, answer)
	}
}

// Whatever becomes of a call, its place is free afterwards; and where the service was not asked, the rate has not counted it.
func TestCapacity_EveryEndOfACallGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	f, option := newFaulty(t, honest)
	var during atomic.Pointer[func()]
	f.choose = func(chain.Signed) fault {
		if do := during.Load(); do != nil {
			(*do)()
		}
		return fault(f.how.Load())
	}
	w := apptest.StartWith(t, apptest.Setup{Burst: 600, Options: []app.Option{option}})
	exec := func(sql string) {
		if _, err := w.DB.Exec(t.Context(), sql); err != nil {
			t.Error(err)
		}
	}
	rejects := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusConflict) }
	hangsUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	rich, broke := w.Payer(t, 100*apptest.PriceUnits), w.Payer(t, apptest.PriceUnits)
	pay := func(s *apptest.Service) apptest.Answer {
		return w.Pay(t, rich, w.Terms(t, s, 120), apptest.Ask(s.URL))
	}
	try := func(s *apptest.Service) apptest.Answer { return w.Send(t, apptest.Ask(s.URL).Trial(), "") }
	place := capacity.Limit{Places: 1}
	both := capacity.Limit{Places: 1, Rate: capacity.RateMin}
	n := 0
	for name, tt := range map[string]struct {
		limit  capacity.Limit
		before func(s *apptest.Service) // while there is no limit yet
		work   http.HandlerFunc
		how    fault
		during func() // while the payment settles
		call   func(s *apptest.Service) apptest.Answer
		code   string // empty: served
	}{
		"served":                    {limit: place, work: apptest.Works, call: pay},
		"refused by the service":    {limit: place, work: rejects, call: pay, code: "rejected_by_service"},
		"failed":                    {limit: place, work: apptest.Fails, call: pay, code: "upstream_5xx"},
		"failed before a byte":      {limit: place, work: hangsUp, call: pay, code: "upstream_unreachable"},
		"a trial":                   {limit: place, work: apptest.Works, call: try},
		"a trial that failed":       {limit: place, work: apptest.Fails, call: try, code: "upstream_5xx"},
		"its settlement is unclear": {limit: both, how: deaf, work: apptest.Works, call: pay, code: "settlement_pending"},
		"its settlement is rejected": {limit: both, work: apptest.Works, code: "settle_rejected",
			before: func(s *apptest.Service) { w.Pay(t, broke, w.Terms(t, s, 120), apptest.Ask(s.URL)) },
			call: func(s *apptest.Service) apptest.Answer {
				return w.Pay(t, broke, w.Terms(t, s, 120), apptest.Ask(s.URL))
			}},
		"we panic while it settles": {limit: both, work: apptest.Works, call: pay, code: "internal",
			during: func() { panic("a panic of the tests") }},
		"its service leaves the shelf while it settles": {limit: both, work: apptest.Works, call: pay, code: "withdrawn",
			during: func() {
				exec(`UPDATE services SET state = 'suspended', state_cause = 'suspension', state_actor = 'admin'`)
			}},
		"its endpoint leaves the shelf while it settles": {limit: both, work: apptest.Works, call: pay, code: "withdrawn",
			during: func() { exec(`UPDATE endpoints SET retired_at = market_now()`) }},
		"its service cools down": {limit: both, work: apptest.Fails, call: pay, code: "in_cooldown", before: func(s *apptest.Service) { pay(s) }},
		"a trial in a cooldown":  {limit: both, work: apptest.Fails, call: try, code: "in_cooldown", before: func(s *apptest.Service) { pay(s) }},
		"a trial too many": {limit: both, work: apptest.Works, call: try, code: "trial_exhausted",
			before: func(s *apptest.Service) { try(s) }},
	} {
		n++
		s := w.List(t, "ends-"+strconv.Itoa(n), tt.work, map[string]any{"trial_calls_per_day": 1})
		if tt.before != nil {
			tt.before(s)
		}
		limit(t, w, s.Slug, tt.limit)
		f.set(tt.how)
		if tt.during != nil {
			during.Store(&tt.during)
		}
		if a := tt.call(s); a.Code() != tt.code || (tt.code == "") != (a.Status == http.StatusOK) {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
		f.set(honest)
		during.Store(nil)

		// Nothing but the place and the rate may stand in the way of the next.
		exec(`DELETE FROM cooldowns`)
		exec(`UPDATE services SET state = 'listed', state_cause = 'relisting', state_actor = 'admin' WHERE state = 'suspended'`)
		exec(`UPDATE endpoints SET retired_at = NULL WHERE retired_at IS NOT NULL`)
		var next apptest.Answer
		apptest.Eventually(t, name+": the gate has heard of that", func() bool {
			next = w.Send(t, apptest.Ask(s.URL), "")
			return !slices.Contains([]string{"in_cooldown", "not_listed"}, next.Code())
		})
		if next.Status != http.StatusPaymentRequired {
			t.Errorf("%s: the next is told %d %s", name, next.Status, next.Body)
		}
	}
}

// The service may take as long as it likes with a call that its caller has left: it is at work.
func TestCapacity_ACallerThatLeavesKeepsItsPlaceAsLongAsTheServiceWorks(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	asked, release := make(chan struct{}), make(chan struct{})
	s := w.ListWith(t, "left", func(rw http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		apptest.Works(rw, r)
	}, map[string]any{"timeout_ms": 60_000}, capacityOf(map[string]any{"concurrency": 1}))
	ask := apptest.Ask(s.URL)
	id := w.SendAndLeave(t, ask, w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, ask)), asked)
	wantFull(t, "while the service works", w.Send(t, ask, ""), 1)
	close(release)
	w.AwaitBooks(t, id(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	apptest.Eventually(t, "the place is free", func() bool { return w.Send(t, ask, "").Status == http.StatusPaymentRequired })
}
