package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/identity"
)

// account makes an account on a plan, and makes it the owner of services. The program hears of it by the notification of a plan that was changed.
func account(t *testing.T, w *apptest.World, plan string, services ...*apptest.Service) uuid.UUID {
	t.Helper()
	id := call.NewID()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := w.DB.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO accounts (id, wallet, plan) VALUES ($1, $2, 'another')`, id, append(id[:], 0, 0, 0, 0))
	for _, s := range services {
		exec(`UPDATE services SET owner_id = $2 WHERE slug = $1`, s.Slug, id)
	}
	exec(`UPDATE accounts SET plan = $2 WHERE id = $1`, id, plan)
	return id
}

// keyOf makes a key of an account that may do everything a key may.
func keyOf(t *testing.T, w *apptest.World, account uuid.UUID) (token string) {
	t.Helper()
	return keyWith(t, w, account, identity.Scopes()...)
}

// keyWith makes a key that may do so much.
func keyWith(t *testing.T, w *apptest.World, account uuid.UUID, scopes ...identity.Scope) (token string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), w.DB, func(tx pgx.Tx) error {
		_, secret, err := identity.Store{}.NewKey(t.Context(), tx, account, identity.KeyDraft{Name: "test", Scopes: scopes})
		token = secret.Reveal()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func withKey(t *testing.T, w *apptest.World, token, method, path, body string) apptest.Answer {
	t.Helper()
	return w.SendBytes(t, method, path, body, "Authorization: Bearer "+token)
}

// The fee and the time that an answer is kept are those of the plan that the owner has when the payment is taken; the operator's own service has those of the
// configuration.
func TestPlans_ACallHasTheFeeAndTheRetentionOfItsServicesOwner(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_FEE_BPS=700", "MARKET_ANSWER_RETENTION=2h")
	own, sold := w.List(t, "own", apptest.Works, nil), w.List(t, "sold", apptest.Works, nil)
	owner := account(t, w, "pro", sold)
	payer := w.Payer(t, 100*apptest.PriceUnits)
	pinned := func(s *apptest.Service) (fee int, kept time.Duration) {
		t.Helper()
		ask := apptest.Ask(s.URL)
		a := w.Pay(t, payer, w.Challenge(t, ask), ask)
		if a.Status != http.StatusOK {
			t.Fatalf("a call of %s: %d %s", s.Slug, a.Status, a.Body)
		}
		const pinnedSQL = `
SELECT c.fee_bps, date_trunc('minute', a.expires_at - d.recorded_at + interval '30 seconds')
  FROM calls c JOIN answers a ON a.call_id = c.id JOIN deliveries d ON d.call_id = c.id WHERE c.id = $1`
		if err := w.DB.QueryRow(t.Context(), pinnedSQL, a.Call()).Scan(&fee, &kept); err != nil {
			t.Fatal(err)
		}
		return fee, kept
	}
	becomes := func(when string, s *apptest.Service, wantFee int, wantKept time.Duration) {
		t.Helper()
		apptest.Eventually(t, when, func() bool { fee, kept := pinned(s); return fee == wantFee && kept == wantKept })
	}
	becomes("a service of an account on pro", sold, 420, 72*time.Hour)
	if fee, kept := pinned(own); fee != 700 || kept != 2*time.Hour {
		t.Errorf("the operator's own has a fee of %d and keeps answers for %s, want 700 and 2h", fee, kept)
	}
	if _, err := w.DB.Exec(t.Context(), `UPDATE accounts SET plan = 'scale' WHERE id = $1`, owner); err != nil {
		t.Fatal(err)
	}
	becomes("after another plan", sold, 280, 168*time.Hour)
}

// Each limit that is counted, met through the API: at the limit it goes, and one above it the answer names the limit, the plan and the next plan.
func TestPlans_WhoMeetsALimitIsToldOfThePlanAndTheNext(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	behind := w.List(t, "behind", apptest.Works, nil) // gives the listings an upstream that answers
	var base string
	if err := w.DB.QueryRow(t.Context(), `SELECT base_url FROM services WHERE slug = $1`, behind.Slug).Scan(&base); err != nil {
		t.Fatal(err)
	}
	key := keyOf(t, w, account(t, w, ""))
	endpoint := func(path, trials string) string {
		return `{"method":"GET","path":"` + path + `","price_usd":"0.002","trial_calls_per_day":` + trials + `}`
	}
	list := func(slug string, endpoints ...string) apptest.Answer {
		t.Helper()
		return withKey(t, w, key, http.MethodPost, "/api/v1/services", `{"slug":"`+slug+`","name":"x","base_url":"`+base+`","probe":{"path":"/healthz","statuses":["200"]},"endpoints":[`+
			strings.Join(endpoints, ",")+`]}`)
	}
	add := func(path, trials string) apptest.Answer {
		t.Helper()
		return withKey(t, w, key, http.MethodPost, "/api/v1/services/one/endpoints", endpoint(path, trials))
	}
	limited := func(what string, a apptest.Answer, key string, value float64, next string, nextValue float64, detail string) {
		t.Helper()
		limit, _ := a.JSON["limit"].(map[string]any)
		then, _ := a.JSON["next_plan"].(map[string]any)
		if a.Status != http.StatusForbidden || a.Code() != "plan_limit" || a.JSON["party"] != "caller" || limit["name"] != key || limit["value"] != value || a.JSON["plan"] != "free" ||
			then["name"] != next || then["value"] != nextValue || a.JSON["detail"] != detail {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	made := func(what string, a apptest.Answer) {
		t.Helper()
		if a.Status != http.StatusCreated {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	made("as many trial calls as the plan has", list("one", endpoint("/0", "100")))
	limited("one trial call more", add("/1", "101"), "trial_calls_per_day", 100, "pro", 1000, "the free plan has 100 trial calls a day for an endpoint; pro has 1,000")
	for i := 1; i < 10; i++ {
		made("an endpoint", add("/"+string(rune('0'+i)), "0"))
	}
	limited("one endpoint more", add("/more", "0"), "endpoints_per_listing", 10, "pro", 50, "the free plan has 10 endpoints in a listing; pro has 50")
	made("a second listing", list("two", endpoint("/", "0")))
	made("a third listing", list("three", endpoint("/", "0")))
	limited("one listing more", list("four", endpoint("/", "0")), "listings", 3, "pro", 20, "the free plan has 3 listings; pro has 20")

	a := withKey(t, w, key, http.MethodGet, "/api/v1/provider", "")
	used := map[string]float64{}
	limits, _ := a.JSON["limits"].([]any)
	for _, l := range limits {
		limit, _ := l.(map[string]any)
		if n, counted := limit["used"].(float64); counted {
			used[limit["key"].(string)] = n
		}
	}
	if a.Status != http.StatusOK || a.JSON["plan"] != "free" || len(limits) != 8 || used["listings"] != 3 || used["endpoints_per_listing"] != 10 || used["trial_calls_per_day"] != 100 || len(used) != 3 {
		t.Errorf("what the account uses: %d %s", a.Status, a.Body)
	}
}

// When less than a tenth is left of what a facilitator may be shown in a day, calls of the smaller plan are sent away first: nobody is charged, and after that
// nobody is asked to pay. Those of the larger one go on.
func TestPlans_WhenLittleIsLeftTheLargerPlanIsServedForLonger(t *testing.T) {
	t.Parallel()
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	file := apptest.FacilitatorsFile(t, map[string]any{"metered": true, "runs_out": "daily", "guard": map[string]any{"floor": 60}}, false, h)
	w := newHostedWorldWith(t, apptest.Setup{Burst: 600}, []string{file}, false, apptest.Works, h)
	w.ShiftInto(t, "day", 24*time.Hour, 12*time.Hour)
	scale := w.List(t, "scale", apptest.Works, nil)
	account(t, w.World, "", w.service)
	account(t, w.World, "scale", scale)
	r := w.Replica(t) // knows from its start who owns what
	payer := w.Payer(t, 100*apptest.PriceUnits)
	small, large := r.At(t, w.ask), r.At(t, apptest.Ask(scale.URL))
	terms := w.Challenge(t, w.ask)
	// The last tenth has six units, and each of three plans a step of two: the smallest one ends at 56.
	const usedSQL = `INSERT INTO source_days (source, day, used) VALUES ('facilitator/hosted-a', (market_now() AT TIME ZONE 'UTC')::date, $1)
ON CONFLICT (source, day) DO UPDATE SET used = excluded.used`
	use := func(n int) {
		t.Helper()
		if _, err := w.DB.Exec(t.Context(), usedSQL, n); err != nil {
			t.Fatal(err)
		}
	}
	use(54)
	if a := r.Send(t, small, w.SignFor(t, payer, terms, 110)); a.Status != http.StatusOK {
		t.Errorf("the last call of the smallest plan: %d %s", a.Status, a.Body)
	}
	apptest.Eventually(t, "of its two units the one for a refund is given back", func() bool { return unitsUsed(t, w.World, "facilitator/hosted-a") == 55 })
	use(55)
	wantOut(t, "one more", r.Send(t, small, w.SignFor(t, payer, terms, 110)), 12*time.Hour)
	wantOut(t, "one more, unpaid", r.Send(t, small, ""), 12*time.Hour)
	const closed, kept = "No payment can be taken just now", "is kept for services of larger plans"
	for service, want := range map[string]bool{w.service.Slug: true, "scale": false} {
		page := string(r.SendBytes(t, http.MethodGet, "/services/"+service, "", "Accept: text/html").Body)
		if strings.Contains(page, closed) != want || strings.Contains(page, kept) != want {
			t.Errorf("the page of %s says that its calls are not taken: %t, want %t", service, strings.Contains(page, closed), want)
		}
	}
	if a := r.Pay(t, payer, r.Challenge(t, large), large); a.Status != http.StatusOK {
		t.Errorf("one of the largest plan: %d %s", a.Status, a.Body)
	}
}
