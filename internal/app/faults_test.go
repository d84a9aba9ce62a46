package app_test

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
)

// B138: whatever keeps a call from being served, only the service's own failure is a strike, and what is kept of the call says whose doing it was. Our
// resolver has a test of its own (TestPaidPath_AResolverThatFailsIsNoStrike), and so has a facilitator that is down or lies (TestRemote_ItsWordIsNoProof).
func TestFaults_OnlyTheProvidersOwnFailureIsAStrike(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	turnsDown := func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "not like this", http.StatusBadRequest) }
	for slug, tt := range map[string]struct {
		work            http.HandlerFunc
		body            string
		reason, outcome string
		party           string
		strikes         int
	}{
		"not-as-listed":   {apptest.Works, `{"n":"x"}`, "input_invalid", "refused", "caller", 0},
		"not-as-it-likes": {turnsDown, `{"n":1}`, "rejected_by_service", "refused", "caller", 0},
		"its-own-example": {turnsDown, `{"n":4711}`, "listing_broken", "failed", "service", 1},
		"its-failure":     {apptest.Fails, `{"n":1}`, "upstream_5xx", "failed", "service", 1},
	} {
		t.Run(slug, func(t *testing.T) {
			t.Parallel()
			s := w.List(t, slug, tt.work, nil)
			ask := apptest.Ask(s.URL).With(tt.body)
			a := w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, ask), ask)
			r := w.Record(t, a.Call())
			if a.Code() != tt.reason || a.JSON["party"] != tt.party || r.JSON["outcome"] != tt.outcome || r.JSON["reason"] != tt.reason || r.JSON["party"] != tt.party {
				t.Errorf("it ends %s of the %v; kept is %v, %v of the %v", a.Code(), a.JSON["party"], r.JSON["outcome"], r.JSON["reason"], r.JSON["party"])
			}
			if d := w.Delivery(t, a.Call()); d.Origin != "external" || d.Source != "127.0.0.1" {
				t.Errorf("kept is that it came from %s, %s", d.Source, d.Origin)
			}
			if open := w.OpenStrikes(t, s.Slug); len(open) != tt.strikes {
				t.Errorf("%d strikes, want %d", len(open), tt.strikes)
			}
		})
	}
	t.Run("the caller hangs up", func(t *testing.T) {
		t.Parallel()
		asked, release := make(chan struct{}), make(chan struct{})
		s := w.List(t, "hung-up", func(rw http.ResponseWriter, r *http.Request) {
			close(asked)
			<-release
			apptest.Works(rw, r)
		}, nil)
		ask := apptest.Ask(s.URL)
		payer := w.Payer(t, apptest.PriceUnits)
		w.SendAndLeave(t, ask, w.Sign(t, payer, w.Challenge(t, ask)), asked)
		close(release)
		apptest.Eventually(t, "the call ends served", func() bool { return served(t, w, s.Slug) == 1 })
		if open := w.OpenStrikes(t, s.Slug); len(open) != 0 {
			t.Errorf("strikes %+v", open)
		}
	})
	// A patience of ours that no service could meet cannot be configured; it is part of the listing, and has a floor.
	t.Run("a timeout of a millisecond", func(t *testing.T) {
		t.Parallel()
		status, answer := w.Admin(t, http.MethodPost, "/api/v1/services", draft("hurried", endpointWith(map[string]any{"timeout_ms": 1})))
		if status != http.StatusUnprocessableEntity || len(fieldsOf(answer)) != 1 {
			t.Errorf("a listing with it: %d %v, want it refused", status, answer)
		}
	})
}

const servedSQL = `
SELECT count(*) FROM deliveries d JOIN services s ON s.id = d.service_id WHERE s.slug = $1 AND d.outcome = 'served'`

// served counts the calls that a service served.
func served(t *testing.T, w *apptest.World, slug string) (n int) {
	t.Helper()
	if err := w.DB.QueryRow(t.Context(), servedSQL, slug).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
