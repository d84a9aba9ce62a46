package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

// signIn signs in as the admin, at whatever page asks for it.
func (b *tab) signIn() {
	b.t.Helper()
	do(b, "type the token", chromedp.SendKeys("#token", apptest.AdminToken))
	do(b, "sign in", chromedp.Click("main button"))
	b.reads("Sign out")
}

// hostileFails fails with an answer that means ill.
func hostileFails(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", `text/html; x="'onfocus=alert(1) autofocus='"`)
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write([]byte(hostileName + hostileText + strings.Repeat("averylongwordwithoutanyspace", 30)))
}

// openCase makes a marketplace with everything that an admin's page can show: a delisted service of somebody hostile with evidence, appeals and decisions,
// one that is suspended, and one under strike by several.
func openCase(t *testing.T) *apptest.World {
	t.Helper()
	w := apptest.Start(t, "MARKET_STRIKE_LIMIT=2", "MARKET_STRIKE_FOLD=0", "MARKET_COOLDOWN=1ms", apptest.Sources(t, 20))
	evil := w.ListWith(t, "evil", hostileFails, map[string]any{"trial_calls_per_day": 5}, map[string]any{"name": hostileName})
	payer := w.Payer(t, 10*apptest.PriceUnits)
	for range 2 {
		w.Pay(t, payer, w.Challenge(t, apptest.Ask(evil.URL)), apptest.Ask(evil.URL))
	}
	post := func(path string, body map[string]any) {
		t.Helper()
		if status, answer := w.Admin(t, http.MethodPost, path, body); status != http.StatusOK && status != http.StatusCreated {
			t.Fatalf("%s: %d %v", path, status, answer)
		}
	}
	struck := w.OpenStrikes(t, "evil")
	if len(struck) != 2 {
		t.Fatalf("open strikes of evil: %v", struck)
	}
	post("/api/v1/services/evil/appeals", map[string]any{"text": hostileText})
	post("/api/v1/admin/strikes/"+struck[0].ID+"/uphold", map[string]any{"reason": hostileName})
	post("/api/v1/services/evil/appeals", map[string]any{"strike": struck[1].ID, "text": hostileName + strings.Repeat("wordwithoutanyspace", 60)})
	w.List(t, "gone", apptest.Works, nil)
	post("/api/v1/admin/services/gone/suspend", map[string]any{"reason": hostileText})
	weather := w.List(t, "weather", apptest.Fails, map[string]any{"trial_calls_per_day": 5})
	w.Send(t, apptest.Ask(weather.URL).Trial(), "")
	if _, err := w.DB.Exec(t.Context(), outagesSQL); err != nil {
		t.Fatal(err)
	}
	if _, err := w.DB.Exec(t.Context(), apptest.SourcesSQL, 20); err != nil {
		t.Fatal(err)
	}
	return w
}

// One outage of a replica that nobody hears of any more, which holds, and one of the fleet that is over.
const outagesSQL = `
INSERT INTO outages (id, replica, cause, began_at, reaches_back_to, held_at, ended_at, asked, failed, providers) VALUES
	(gen_random_uuid(), NULL, 'services', market_now() - interval '2 hours', market_now() - interval '123 minutes', market_now() - interval '110 minutes',
	 market_now() - interval '109 minutes', 12, 9, 4),
	(gen_random_uuid(), gen_random_uuid(), 'canaries', market_now() - interval '1 minute', market_now() - interval '4 minutes', market_now(), NULL, 2, 1, 1)`

// Rows like those of one service under strike, with other names, addresses and times: a shelf on which very much went wrong.
const crowdSQL = `
WITH one AS (
	SELECT s FROM services s WHERE slug = 'weather'
), made AS (
	INSERT INTO services
	SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'slug', 'crowd-' || n, 'name', 'Service number ' || n))).*
	  FROM one, generate_series(1, $1) n
	RETURNING id, slug, right(slug, -6)::int AS n
), sold AS (
	INSERT INTO endpoints
	SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(), 'service_id', made.id))).*
	  FROM made, endpoints e WHERE e.service_id = (SELECT (s).id FROM one)
	RETURNING id, service_id
), failed AS (
	INSERT INTO deliveries
	SELECT (jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'call_id', gen_random_uuid(), 'service_id', made.id, 'endpoint_id', sold.id,
	       'source', CASE WHEN made.n % 3 = 0 THEN '192.0.2.7' ELSE '198.51.' || k || '.' || made.n % 200 END, 'recorded_at', market_now() - made.n * k * interval '1 minute'))).*
	  FROM made JOIN sold ON sold.service_id = made.id, generate_series(1, 2) k,
	       (SELECT d FROM deliveries d WHERE service_id = (SELECT (s).id FROM one) AND outcome = 'failed' LIMIT 1) d(d)
	RETURNING id, service_id, recorded_at
), struck AS (
	INSERT INTO strikes (id, service_id, opened_at, folds_until, last_evidence_at)
	SELECT gen_random_uuid(), service_id, max(recorded_at), max(recorded_at), max(recorded_at) FROM failed GROUP BY service_id
	RETURNING id, service_id
)
INSERT INTO strike_deliveries (strike_id, delivery_id) SELECT struck.id, failed.id FROM struck JOIN failed USING (service_id)`

// Accounts of each plan, of one that is gone and of one that was never set, and more of them than a page has.
const accountsSQL = `
INSERT INTO accounts (id, wallet, plan, created_at, last_seen_at)
SELECT gen_random_uuid(), decode(lpad(to_hex(n), 40, 'a'), 'hex'), (ARRAY ['', 'free', 'pro', 'scale', 'a-plan-that-is-in-no-file-anymore'])[1 + n % 5],
       market_now() - n * interval '1 day', market_now() - n * interval '1 hour'
  FROM generate_series(1, $1) n`

// openOffice fills what an admin decides beside strikes: every switch on, accounts, and admins who are and who were.
// payoutsSQL has payouts of accounts that have earned nothing here, in every state that an admin decides about, and one that has arrived.
const payoutsSQL = `
ALTER TABLE payouts DISABLE TRIGGER payouts_checked;
INSERT INTO payouts (id, account_id, network, asset, treasury, number, amount, address, nonce, from_block, made_by, state, held, why, signed_at, next_at, transaction,
       log_index, block_number, confirmed_at)
SELECT gen_random_uuid(), a.id, 'eip155:31337', decode(repeat('aa', 20), 'hex'), decode(repeat('bb', 20), 'hex'), 1, 1234567 * a.nth, decode(repeat('cc', 20), 'hex'),
       sha256(a.id::text::bytea), 0, 'the threshold of the plan', (ARRAY['owed', 'sent', 'parked', 'confirmed', 'cancelled'])[a.nth], a.nth = 2,
       CASE a.nth WHEN 3 THEN 'the token refused it: <img src=x onerror=alert(1)>' ELSE '' END, CASE WHEN a.nth IN (2, 4) THEN market_now() END, market_now() + interval '1 day',
       CASE a.nth WHEN 4 THEN sha256('4') END, CASE a.nth WHEN 4 THEN 1 END, CASE a.nth WHEN 4 THEN 1 END, CASE a.nth WHEN 4 THEN market_now() END
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS nth FROM accounts) a WHERE a.nth <= 5`

func openOffice(t *testing.T, w *apptest.World) {
	t.Helper()
	if _, err := w.DB.Exec(t.Context(), accountsSQL, 70); err != nil {
		t.Fatal(err)
	}
	if _, err := w.DB.Exec(t.Context(), payoutsSQL); err != nil {
		t.Fatal(err)
	}
	post := func(path string, body map[string]any) {
		t.Helper()
		if status, answer := w.Admin(t, http.MethodPost, path, body); status != http.StatusOK {
			t.Fatalf("%s: %d %v", path, status, answer)
		}
	}
	for _, order := range []map[string]any{{"stop_402": devnet.NetworkID}, {"stop_payouts": true}, {"suspend_strikes": true}} {
		order["on"], order["reason"] = true, hostileText
		post("/api/v1/admin/switches", order)
	}
	for n, on := range []bool{true, true, false} {
		wallet := fmt.Sprintf("0x%040x", min(n, 1)+0xaaaa)
		post("/api/v1/admin/admins", map[string]any{"wallet": wallet, "on": on, "reason": hostileName})
	}
}

// openTill fills what an admin decides about money: refunds that are parked, for a reason that a node wrote, and calls that a restore brought in doubt.
func openTill(t *testing.T, w *apptest.World) {
	t.Helper()
	s := &shop{World: w}
	var failed string
	if err := w.DB.QueryRow(t.Context(), `SELECT call_id FROM refunds ORDER BY call_id LIMIT 1`).Scan(&failed); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the refund arrives", func() bool { return w.Books(t, failed).Refund == "confirmed" })
	s.parkedLike(t, failed)
	s.exec(t, `UPDATE refunds SET why = $2, attempts = 1, waits_for = 'rpc/eip155:84532/public' WHERE call_id = $1`, s.parkedLike(t, failed), hostileText+strings.Repeat("averylongword", 30))
	s.inReview(t, failed, "settled", map[string]any{"asked_at": nil})
	s.inReview(t, failed, "asked", map[string]any{"path": "/" + hostileText})
	s.inReview(t, failed, "unknown", notOnChain)
}

func adminViews(w *apptest.World, suffix string, paths ...string) (views []view) {
	for _, path := range paths {
		name := strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-").Replace(path), "-") + suffix
		views = append(views, view{name, w.URL + path})
	}
	return views
}

// Each page of the admin's, with nothing, something and very much under strike. B145 in what a service answered, in a reason and in an appeal.
func TestAdminPages_AreForEverybodyAndRunNothing(t *testing.T) {
	t.Parallel()
	axe := readAxe(t)
	empty, full := apptest.Start(t), openCase(t)
	b := openTab(t)
	b.check(view{"admin-signin", empty.URL + "/admin/strikes"}, axe)
	b.signIn()
	b.reads("No service is under strike.")
	views := adminViews(empty, "-empty", "/admin", "/admin/strikes", "/admin/services", "/admin/outages", "/admin/sources", "/admin/notices", "/admin/audit", "/admin/switches", "/admin/accounts",
		"/admin/admins", "/admin/refunds", "/admin/payouts", "/admin/money")
	openOffice(t, full)
	openTill(t, full)
	views = append(views, adminViews(full, "", "/admin", "/admin/strikes", "/admin/strikes/evil", "/admin/strikes/weather", "/admin/strikes/gone?done=suspend",
		"/admin/services", "/admin/outages", "/admin/sources", "/admin/notices", "/admin/audit", "/admin/switches", "/admin/accounts",
		"/admin/payouts", "/admin/payouts?state=parked", "/admin/accounts?wallet=nonsense", "/admin/admins", "/admin/strikes/nobody", "/admin/refunds", "/admin/refunds?state=confirmed",
		"/admin/refunds?done=refund", "/admin/money")...)
	for _, v := range views {
		b.check(v, axe)
	}
	b.open(full.URL + "/admin/strikes/evil")
	b.reads("2 of 2 strikes", "concentrated", "onerror=", "Status 500", "Upheld", "not answered", "127.0.0.1")

	const crowd = 200
	if _, err := full.DB.Exec(t.Context(), crowdSQL, crowd); err != nil {
		t.Fatal(err)
	}
	for _, v := range adminViews(full, "-many", "/admin/strikes", "/admin/strikes?from=150", "/admin/strikes/crowd-7") {
		b.check(v, axe)
	}
	b.open(full.URL + "/admin/strikes")
	b.reads(fmt.Sprintf("%d services carry strikes", crowd+2))
	for range 4 {
		do(b, "next page", chromedp.Click(`a[rel="next"]`))
	}
	b.reads("First page")
	if more := do(b, "the last page", chromedp.Evaluate[bool](`document.querySelector('a[rel="next"]') !== null`)); more {
		t.Error("the queue of 202 services goes on after 5 pages of 50")
	}
}

// An admin signs in, reads the evidence, voids the strike that took a service off the shelf, and sees it for sale again.
func TestAdminWalk_AVoidedStrikePutsAServiceBack(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_STRIKE_LIMIT=1")
	struck := w.List(t, "weather", apptest.Fails, nil)
	w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(struck.URL)), apptest.Ask(struck.URL))

	b := openTab(t)
	b.look(1280, "light")
	b.open(w.URL + "/services/weather")
	b.reads("This service is delisted")
	b.open(w.URL + "/admin/strikes")
	b.signIn()
	if at := do(b, "where", chromedp.Location()); !strings.HasSuffix(at, "/admin/strikes") {
		t.Errorf("after signing in: %s", at)
	}
	b.reads("1 service carries a strike", "1 of 1", "concentrated", "1 of 1 from one address")
	do(b, "open it", chromedp.Click(".queue a"))
	b.reads("What counts against it", "1 of 1 strike", "What was measured of it", "upstream_5xx", "14 bytes came back", "No other service was asked.", "127.0.0.1")
	do(b, "what came back", chromedp.Click(".evidence details summary"))
	b.reads("broken inside", "Declared as text/plain")
	do(b, "void", chromedp.Click(".strike .decide summary"))
	b.reads("gets its place back")
	do(b, "say why", chromedp.SendKeys(".strike .decide textarea", "our own resolver was broken"))
	do(b, "decide", chromedp.Click(".strike .decide button"))
	b.reads("The strike is voided. The service is for sale, with 0 of 1 strike.", "our own resolver was broken", "state: delisted → listed")
	do(b, "what everybody sees", chromedp.Click(`a[href="/services/weather"]`))
	b.reads("for sale")
	if status := w.Send(t, apptest.Ask(struck.URL), "").Status; status != http.StatusPaymentRequired {
		t.Errorf("the service that was put back answers %d, want 402", status)
	}
	b.open(w.URL + "/admin/audit")
	b.reads("Voided: strike", "our own resolver was broken")
	do(b, "sign out", chromedp.Click(".adminbar button"))
	b.reads("Admin token")
	b.open(w.URL + "/admin/audit")
	b.reads("Sign in as an admin")
}
