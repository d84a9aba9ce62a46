package app_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/payment"
)

// why is the body of a decision.
var why = map[string]any{"reason": "it was our proxy"}

// struckOff lists a service that is delisted by its strikes, each after the last cooldown.
func struckOff(t *testing.T, w *apptest.World, slug string) (*apptest.Service, chain.Key, payment.Required) {
	t.Helper()
	s := w.List(t, slug, apptest.Fails, nil)
	payer, terms := w.Payer(t, 10*apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL))
	for n := range 3 {
		if n > 0 {
			w.Shift(t, 61*time.Second)
		}
		expect(t, "a failure", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusBadGateway, "upstream_5xx")
	}
	apptest.Eventually(t, "it is gone from the shelf", func() bool { return w.Send(t, apptest.Ask(s.URL), "").Status == http.StatusGone })
	return s, payer, terms
}

// strikesOf returns the strikes of a service as an admin sees them, whatever became of them.
func strikesOf(t *testing.T, w *apptest.World, slug string) (view map[string]any, items []map[string]any) {
	t.Helper()
	status, view := w.Admin(t, http.MethodGet, "/api/v1/admin/strikes/"+slug, nil)
	if status != http.StatusOK {
		t.Fatalf("strikes of %s: %d %v", slug, status, view)
	}
	list, _ := view["items"].([]any)
	for _, item := range list {
		strike, _ := item.(map[string]any)
		items = append(items, strike)
	}
	return view, items
}

func decide(t *testing.T, w *apptest.World, strike map[string]any, action string) (int, map[string]any) {
	t.Helper()
	id, _ := strike["id"].(string)
	return w.Admin(t, http.MethodPost, "/api/v1/admin/strikes/"+id+"/"+action, why)
}

// A strike that was none is as if it had never been: the service is back on the shelf, at work, and nearer to leaving it by two strikes alone.
func TestReview_AVoidPutsADelistedServiceBackToWork(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s, payer, terms := struckOff(t, w, "restored")
	other := w.Replica(t)
	_, strikes := strikesOf(t, w, "restored")
	if len(strikes) != 3 {
		t.Fatalf("%d strikes", len(strikes))
	}
	status, decision := decide(t, w, strikes[2], "void")
	effect, _ := decision["effect"].(string)
	if status != http.StatusOK || decision["service"] != "restored" || decision["action"] != "void" || !strings.Contains(effect, "back on the shelf") {
		t.Fatalf("void: %d %v", status, decision)
	}
	s.Do(apptest.Works)
	expect(t, "at once, while the third cooldown would run", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusOK, "")
	apptest.Eventually(t, "another process sells it too", func() bool {
		return w.Send(t, other.At(t, apptest.Ask(s.URL)), "").Status == http.StatusPaymentRequired
	})
	want := []string{"delisted>listed void: put back, because a strike against it does not count by ", "listed>delisted strikes: 3 strikes within 24 h by "}
	if got := events(t, w, "restored", nil); len(got) != 3 || got[0] != want[0] {
		t.Errorf("everybody sees %q, want %q first", got, want)
	}
	_, strikes = strikesOf(t, w, "restored")
	if strikes[2]["state"] != "voided" || strikes[2]["decision"].(map[string]any)["reason"] != "it was our proxy" { //nolint:forcetypeassert // of our own API
		t.Errorf("the strike is shown as %v", strikes[2])
	}
	status, list := w.Admin(t, http.MethodGet, "/api/v1/admin/audit?service=restored", nil)
	entry := first(list["items"])
	before, _ := entry["before"].(map[string]any)
	after, _ := entry["after"].(map[string]any)
	if status != http.StatusOK || entry["action"] != "void" || entry["subject"] != strikes[2]["id"] || entry["by"] != "admin token" || entry["service"] != "restored" ||
		before["state"] != "delisted" || before["counting"] != 3.0 || after["state"] != "listed" || after["counting"] != 2.0 {
		t.Errorf("the audit: %d %v", status, list)
	}
}

func TestReview_ARelistedServiceBeginsAnew(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s, payer, terms := struckOff(t, w, "again")
	status, view := w.Admin(t, http.MethodPost, "/api/v1/admin/services/again/relist", why)
	if status != http.StatusOK || view["state"] != "listed" || view["state_reason"] != "it was our proxy" {
		t.Fatalf("relist: %d %v", status, view)
	}
	if open := w.OpenStrikes(t, "again"); len(open) != 0 {
		t.Errorf("%d strikes count", len(open))
	}
	expect(t, "it fails once more", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusBadGateway, "upstream_5xx")
	if open := w.OpenStrikes(t, "again"); len(open) != 1 {
		t.Errorf("%d strikes count, want the one since", len(open))
	}
	s.Do(apptest.Works)
	w.Shift(t, 61*time.Second)
	expect(t, "and works after its rest", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusOK, "")
	if _, strikes := strikesOf(t, w, "again"); strikes[0]["state"] != "archived" || strikes[3]["state"] != "cleared" {
		t.Errorf("its strikes are %v", strikes)
	}
}

// Two admins at once: the first wins, and the second is told who decided what, and when. An appeal opens it again.
func TestReview_OfTwoAdminsTheSecondIsTold(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	struckOff(t, w, "judged")
	_, seen := w.Admin(t, http.MethodGet, "/api/v1/services/judged", nil)
	_, strikes := strikesOf(t, w, "judged")
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		refused []map[string]any
	)
	for range 2 {
		wg.Go(func() {
			if status, answer := decide(t, w, strikes[0], "uphold"); status != http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				refused = append(refused, answer)
			}
		})
	}
	wg.Wait()
	if len(refused) != 1 || refused[0]["code"] != "conflict" {
		t.Fatalf("refused: %v, want one conflict", refused)
	}
	if detail, _ := refused[0]["detail"].(string); !strings.Contains(detail, "upheld already, by admin token at 20") || !strings.Contains(detail, "it was our proxy") {
		t.Errorf("the second is told %q", detail)
	}

	status, made := w.Admin(t, http.MethodPost, "/api/v1/services/judged/appeals", map[string]any{"strike": strikes[0]["id"], "text": "<b>Your</b> proxy failed, not we."})
	if status != http.StatusCreated || made["strike"] != strikes[0]["id"] || made["answer"] != nil {
		t.Fatalf("appeal: %d %v", status, made)
	}
	if _, again := strikesOf(t, w, "judged"); first(again[0]["appeals"])["text"] != "<b>Your</b> proxy failed, not we." {
		t.Errorf("beside the evidence stands %v", again[0]["appeals"])
	}
	if status, answer := decide(t, w, strikes[0], "void"); status != http.StatusOK {
		t.Errorf("after the appeal: %d %v", status, answer)
	}
	if status, answer := decide(t, w, strikes[0], "void"); status != http.StatusConflict {
		t.Errorf("once more: %d %v", status, answer)
	}
	_, list := w.Admin(t, http.MethodGet, "/api/v1/services/judged/appeals", nil)
	if answer, _ := first(list["items"])["answer"].(map[string]any); answer["action"] != "void" || answer["by"] != "admin token" {
		t.Errorf("appeals: %v", list)
	}
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/strikes/"+call404+"/void", why); status != http.StatusNotFound {
		t.Errorf("no strike: %d %v", status, answer)
	}

	// It is on the shelf again, which who looked before does not know.
	order := map[string]any{"reason": "we look at it", "state_since": seen["state_since"]}
	status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/services/judged/suspend", order)
	if detail, _ := answer["detail"].(string); status != http.StatusConflict || !strings.Contains(detail, "changed after you looked: it is listed, by admin token at 20") {
		t.Errorf("an order by what has passed: %d %v", status, answer)
	}
	if status, made := w.Admin(t, http.MethodPost, "/api/v1/services/judged/appeals", map[string]any{"text": "Say that it was not we."}); status != http.StatusCreated {
		t.Fatalf("appeal: %d %v", status, made)
	}
	_, seen = w.Admin(t, http.MethodGet, "/api/v1/services/judged", nil)
	order["state_since"] = seen["state_since"]
	for _, want := range []int{http.StatusOK, http.StatusConflict} {
		if status, view := w.Admin(t, http.MethodPost, "/api/v1/admin/services/judged/uphold", order); status != want || status == http.StatusOK && view["state_since"] != seen["state_since"] {
			t.Errorf("uphold: %d %v, want %d", status, view, want)
		}
	}
	_, list = w.Admin(t, http.MethodGet, "/api/v1/services/judged/appeals", nil)
	if answer, _ := first(list["items"])["answer"].(map[string]any); answer["action"] != "uphold" || answer["reason"] != "we look at it" {
		t.Errorf("appeals: %v", list)
	}
}

const call404 = "01a229fc-ba8e-7206-9714-2247e6d48e58"
