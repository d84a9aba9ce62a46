package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/notify/notifytest"
)

// setSources has some sources out, each in its own way.
func setSources(t *testing.T, w *apptest.World, n int) {
	t.Helper()
	if _, err := w.DB.Exec(t.Context(), apptest.SourcesSQL, n); err != nil {
		t.Fatal(err)
	}
	const noticeSQL = `INSERT INTO notices (id, kind, subject, text) VALUES (gen_random_uuid(), 'source_out', 'facilitator/hosted-1', 'it is out')`
	if _, err := w.DB.Exec(t.Context(), noticeSQL); err != nil {
		t.Fatal(err)
	}
}

// The API, the pages and the metrics tell the same of a source: who stopped, since when, until when, how much was done of what was asked, and whether the
// operator was told.
func TestSourcesPage_TellWhoStoppedUntilWhenAndHowMuchWasDone(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "webhook.secret")
	if err := os.WriteFile(secret, []byte(notifytest.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	w := apptest.Start(t, apptest.Sources(t, 6), "MARKET_OPERATOR_WEBHOOK="+notifytest.NewReceiver(t, notifytest.Secret).URL(), "MARKET_OPERATOR_WEBHOOK_SECRET_FILE="+secret)
	setSources(t, w, 6)
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/notices/test", map[string]any{}); status != http.StatusOK {
		t.Fatalf("send a test: %d %v", status, answer)
	}
	status, answer := w.Admin(t, http.MethodGet, "/api/v1/admin/sources", nil)
	items, _ := answer["items"].([]any)
	if status != http.StatusOK || len(items) < 6 {
		t.Fatalf("sources: %d %v", status, answer)
	}
	states := map[string]string{}
	byName := map[string]map[string]any{}
	for _, each := range items {
		item, _ := each.(map[string]any)
		name := fmt.Sprint(item["name"])
		states[name], byName[name] = fmt.Sprint(item["state"]), item
	}
	for name, want := range map[string]string{"hosted-1": "exhausted", "hosted-2": "guarded", "hosted-3": "exhausted", "hosted-4": "denied", "hosted-5": "paced", "hosted-6": "ok"} {
		if got := states["facilitator/"+name]; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if first, _ := items[0].(map[string]any); first["state"] != "denied" {
		t.Errorf("what is gravest does not stand first: %v", first)
	}
	one := byName["facilitator/hosted-1"]
	notice, _ := one["notice"].(map[string]any)
	if one["used"] != 300.0 || one["asked"] != 1000.0 || one["denied"] != 700.0 || one["cap"] != 15_000.0 || one["busiest"] != 4107.0 || one["cost_today_usd"] != "0.3" ||
		one["budget_url"] != "https://facilitator.example/billing?team=7" || notice["kind"] != "source_out" || one["retry_at"] == nil || one["last_success_at"] == nil {
		t.Errorf("%v", one)
	}
	if both, _ := byName["facilitator/hosted-3"]["reasons"].([]any); len(both) != 2 {
		t.Errorf("both reasons of hosted-3: %v", both)
	}

	p := signInAtDesk(t, w)
	_, page := p.get(t, "/admin/sources")
	for _, want := range []string{"They stopped us at", "out of credit, by HTTP 402. We ask again at", "We stopped at 15,000: normal is 4,207 a day.", "have not accepted our credential", "4 of "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if topped, corrected := strings.Count(page, "I have topped it up, try now"), strings.Count(page, "I have corrected it, try now"); topped != 2 || corrected != 1 {
		t.Errorf("%d can be topped up, want 2; %d can be corrected, want 1", topped, corrected)
	}
	if _, overview := p.get(t, "/admin"); !strings.Contains(overview, `<li class="bad"><a href="/admin/sources"><strong>4</strong> sources out</a>`) || !strings.Contains(overview, "facilitator/hosted-4: They have not accepted") {
		t.Errorf("the overview does not say what is out:\n%s", overview)
	}

	scraped := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.App.OpsURL() + "/metrics"}, "")
	for _, want := range []string{`market_source_exhausted{source="facilitator/hosted-1"} 1`, `market_source_exhausted{source="facilitator/hosted-2"} 0`, `market_source_used{source="facilitator/hosted-2"} 15000`,
		`market_source_reservations_total{class="refund",result="granted",source="webhook"} 1`, `market_notices_total{kind="test",result="sent"} 1`,
		`market_source_cap{source="facilitator/hosted-2"} 15000`, `market_deferred{what="refunds"} 0`, `market_deferred_oldest_seconds{what="notices"} 0`, `market_deferred{what="provider_notices"} 0`, "market_database_read 1", "go_goroutines"} {
		if !strings.Contains(string(scraped.Body), want+"\n") && !strings.Contains(string(scraped.Body), want+" ") {
			t.Errorf("the metrics do not have %s", want)
		}
	}
	for _, secret := range []string{"http://", "https://", "team=7", apptest.AdminToken, "whsec", "hidden-path"} {
		if strings.Contains(string(scraped.Body), secret) {
			t.Errorf("the metrics hold %q", secret)
		}
	}
}

// Somebody says that a source is topped up: the next request may test it, who said so is kept, and a source that money does not help is not tried.
func TestSourcesPage_OneThatIsSaidToBeToppedUpIsAskedNext(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, apptest.Sources(t, 6))
	setSources(t, w, 6)
	status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/sources/facilitator/hosted-1/try", map[string]any{"reason": "invoice 4711"})
	tried, _ := answer["source"].(map[string]any)
	if status != http.StatusOK || tried["name"] != "facilitator/hosted-1" || answer["reason"] != "invoice 4711" || !strings.Contains(fmt.Sprint(answer["effect"]), "The next request tests it.") ||
		!strings.Contains(fmt.Sprint(tried["reasons"]), "The next request tests it.") {
		t.Errorf("try: %d %v", status, answer)
	}
	p := signInAtDesk(t, w)
	done, _ := p.post(t, "/admin/sources", url.Values{"source": {"facilitator/hosted-3"}})
	if done.StatusCode != http.StatusSeeOther || done.Header.Get("Location") != "/admin/sources#source-facilitator%2Fhosted-3" {
		t.Errorf("the button: %d to %s", done.StatusCode, done.Header.Get("Location"))
	}
	_, page := p.get(t, "/admin/sources")
	if n := strings.Count(page, ", try now"); n != 1 || !strings.Contains(page, "Admin token said at") || !strings.Contains(page, "invoice 4711") {
		t.Errorf("%d can be tried still:\n%s", n, page)
	}
	_, log := w.Admin(t, http.MethodGet, "/api/v1/admin/audit", nil)
	entries, _ := log["items"].([]any)
	if len(entries) != 2 {
		t.Fatalf("the audit has %v", entries)
	}
	if first, _ := entries[1].(map[string]any); first["action"] != "source_tried" || first["subject"] != "facilitator/hosted-1" || first["reason"] != "invoice 4711" || fmt.Sprint(first["before"]) == fmt.Sprint(first["after"]) {
		t.Errorf("the audit has %v", first)
	}
	if _, shown := p.get(t, "/admin/audit"); !strings.Contains(shown, "Said to be topped up: source facilitator/hosted-1") {
		t.Errorf("the page of the audit:\n%s", shown)
	}
	for name, want := range map[string]int{"facilitator%2Fhosted-4": 200, "facilitator/hosted-2": 409, "facilitator/hosted-6": 409, "facilitator/nobody": 404, "mail/../facilitator/hosted-1": 404} {
		if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/sources/"+name+"/try", nil); status != want {
			t.Errorf("try %s: %d %v, want %d", name, status, answer, want)
		}
	}
	if answer, page := p.post(t, "/admin/sources", url.Values{"source": {"facilitator/hosted-2"}}); answer.StatusCode != http.StatusConflict || !strings.Contains(page, "Raise guard.floor") {
		t.Errorf("a button that money does not help: %d\n%s", answer.StatusCode, page)
	}
	forged := *p
	forged.form = "another"
	if answer, _ := forged.post(t, "/admin/sources", url.Values{"source": {"facilitator/hosted-5"}}); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another page: %d", answer.StatusCode)
	}
}

// Everything that settles refuses at once: every page is served all the same. Everybody reads what is out by its kind and its network, an admin by its name.
func TestSourcesPage_AllOutAtOnceThePagesSayPreciselyWhatIsOut(t *testing.T) {
	t.Parallel()
	first, second := apptest.NewHosted(t, apptest.SupportsUs, func(apptest.Settling) {}), apptest.NewHosted(t, apptest.SupportsUs, func(apptest.Settling) {})
	w := apptest.Start(t, apptest.HostedFile(t, false, first, second))
	w.List(t, "weather", apptest.Works, nil)
	page := func(path string) string {
		t.Helper()
		a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + path, Header: http.Header{"Accept": {"text/html"}, "User-Agent": {"Mozilla/5.0"}}}, "")
		if a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.Status, a.Body)
		}
		return string(a.Body)
	}
	if text := page("/"); strings.Contains(text, "No payment can be taken just now") {
		t.Fatalf("before anything is out:\n%s", text)
	}
	const outSQL = `
INSERT INTO source_state (source, exhausted_at, retry_at, why, said, out_since, refused_at)
SELECT s, market_now(), market_now() + interval '1 hour', 'exhausted', 'HTTP 402', market_now(), market_now() FROM unnest(ARRAY['facilitator/hosted-a', 'facilitator/hosted-b']) s`
	if _, err := w.DB.Exec(t.Context(), outSQL); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the catalog says that nobody can pay", func() bool { return strings.Contains(page("/"), "No payment can be taken just now") })
	for _, path := range []string{"/", "/services/weather"} {
		text := page(path)
		if !strings.Contains(text, "base-sepolia (eip155:84532): who settles payments there takes no more requests from us for now. It is asked again at ") || strings.Contains(text, "hosted") {
			t.Errorf("%s does not say what is out, or names who it is:\n%s", path, text)
		}
	}
	for _, path := range []string{"/rules", "/calls"} {
		page(path)
	}
	p := signInAtDesk(t, w)
	_, overview := p.get(t, "/admin")
	for _, want := range []string{"No payment is taken on base-sepolia (eip155:84532): ", "facilitator/hosted-a: They stopped us at ", "facilitator/hosted-b: They stopped us at ", ", by HTTP 402. We ask again at "} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview does not say %q:\n%s", want, overview)
		}
	}
}
