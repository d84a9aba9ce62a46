package app_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"market/internal/app"
	"market/internal/app/apptest"
)

// 100 payments, each sent to two replicas at the same moment: each is asked once, and the other request learns that it is under way, or
// how it ended.
func TestRaces_OnePaymentAtTwoReplicasIsAskedOnce(t *testing.T) {
	t.Parallel()
	const payments, rounds, batch = 100, 3, 25
	w := apptest.StartWith(t, apptest.Setup{Burst: 600})
	other := w.Replica(t)
	s := w.List(t, "raced", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	apptest.Eventually(t, "the other replica knows the service", func() bool {
		return w.Send(t, other.At(t, ask), "").Status == http.StatusPaymentRequired
	})
	payer := w.Payer(t, rounds*payments*apptest.PriceUnits)

	for round := range rounds {
		before := s.Asked()
		for range payments / batch {
			var (
				together sync.WaitGroup
				start    = make(chan struct{})
			)
			for range batch {
				header := w.Sign(t, payer, terms)
				var pair [2]apptest.Answer
				var both sync.WaitGroup
				for i, door := range []apptest.Asking{ask, other.At(t, ask)} {
					both.Go(func() {
						<-start
						pair[i] = w.Send(t, door, header)
					})
				}
				together.Go(func() {
					both.Wait()
					checkPair(t, pair)
				})
			}
			close(start)
			together.Wait()
		}
		if got := s.Asked() - before; got != payments {
			t.Errorf("round %d: the service was asked %d times for %d payments", round, got, payments)
		}
	}
	wantMoved(t, w, rounds*payments, 0)
}

// checkPair wants one answer of the service, and the other request refused without a word of it.
func checkPair(t *testing.T, pair [2]apptest.Answer) {
	t.Helper()
	served, told := pair[0], pair[1]
	if served.Status != http.StatusOK {
		served, told = told, served
	}
	if served.Status != http.StatusOK {
		t.Errorf("nobody was served: %d %s and %d %s", served.Status, served.Body, told.Status, told.Body)
		return
	}
	switch {
	case told.Call() != served.Call():
		t.Errorf("one payment is calls %s and %s", served.Call(), told.Call())
	case told.Status == http.StatusConflict && told.Code() == "in_progress" && told.Header.Get("Retry-After") != "":
	case told.Status == http.StatusGone && told.Code() == "answer_expired":
	case told.Status == http.StatusOK && string(told.Body) == string(served.Body):
	default:
		t.Errorf("the other request: %d %s", told.Status, told.Body)
	}
}

const (
	// A call that was settled and not asked, at the end of its grace.
	graceEndsSQL = `
UPDATE calls SET lease_until = market_now() - $2::interval, look_at = market_now() WHERE id = ANY($1)`
	endsSQL = `
SELECT count(*) FILTER (WHERE d.outcome = 'served'), count(*) FILTER (WHERE d.reason = 'interrupted'),
       count(*) FILTER (WHERE (d.outcome = 'served') = (r.call_id IS NOT NULL))
  FROM calls c LEFT JOIN deliveries d ON d.call_id = c.id LEFT JOIN refunds r ON r.call_id = c.id`
)

// A retry at the end of the grace meets the sweeper: one of the two wins, and no call is both served and refunded.
func TestRaces_ARetryAtTheEndOfTheGraceIsServedOrRefundedNeverBoth(t *testing.T) {
	t.Parallel()
	const calls, batch, grace = 200, 10, time.Hour
	f, option := newFaulty(t, hasty)
	w := apptest.StartWith(t, apptest.Setup{Burst: 600, Options: []app.Option{option}}, "MARKET_GRACE=1h")
	s := w.List(t, "graced", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	payer := w.Payer(t, calls*apptest.PriceUnits)
	var (
		headers [calls]string
		ids     [calls]string
		paying  errgroup.Group
	)
	paying.SetLimit(batch)
	for i := range calls {
		paying.Go(func() error {
			headers[i] = w.Sign(t, payer, terms)
			ids[i] = w.Send(t, ask, headers[i]).Call()
			return nil
		})
	}
	_ = paying.Wait()
	apptest.Eventually(t, "every payment is found", func() bool { return w.Count(t, "settled") == calls })
	f.set(honest)

	for from := 0; from < calls; from += batch {
		if _, err := w.DB.Exec(t.Context(), graceEndsSQL, ids[from:from+batch], grace); err != nil {
			t.Fatal(err)
		}
		var racing sync.WaitGroup
		for _, header := range headers[from : from+batch] {
			racing.Go(func() {
				if a := w.Send(t, ask, header); a.Status == http.StatusPaymentRequired {
					t.Errorf("a retry was asked to pay again: %s", a.Body)
				}
			})
		}
		racing.Go(func() {
			wait := time.NewTimer(rand.N(12 * time.Millisecond))
			defer wait.Stop()
			<-wait.C
			if err := w.App.SweepOnce(t.Context()); err != nil {
				t.Error(err)
			}
		})
		racing.Wait()
	}
	var served, interrupted, contradict int
	apptest.Eventually(t, "every call has ended", func() bool {
		if err := w.DB.QueryRow(t.Context(), endsSQL).Scan(&served, &interrupted, &contradict); err != nil {
			t.Fatal(err)
		}
		return served+interrupted == calls
	})
	if contradict != 0 || s.Asked() != served {
		t.Errorf("%d calls are served and refunded or neither; the service was asked %d times for %d served calls", contradict, s.Asked(), served)
	}
	if served == 0 || interrupted == 0 {
		t.Errorf("%d served, %d interrupted: this was no race", served, interrupted)
	}
	t.Logf("%d served, %d interrupted", served, interrupted)
	apptest.Eventually(t, "every refund is confirmed", func() bool { return w.CountRefunds(t, "confirmed") == interrupted })
	wantMoved(t, w, calls, interrupted)
}
