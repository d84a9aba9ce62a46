package browsertest

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/call"
)

// Hostile texts: what a provider may have written, and what may stand in an address.
const (
	hostileName = `<img src=x onerror="document.title='pwned'">`
	hostileText = `</script><script>document.title='pwned'</script>" onfocus="document.title='pwned'" autofocus="`
	hostileLink = `?x='onfocus=alert(1)%20autofocus='&q=%3Cscript%3Ealert(1)%3C/script%3E`
)

// A shop is a marketplace with something of everything in it, and the addresses of its pages.
type shop struct {
	*apptest.World
	served, refunded, trial string // ids of calls
	pending, parked         string // of open ones
	transaction             string // of the refunded payment
}

func listing(slug, name, description, base string, tags []string, endpoints ...map[string]any) map[string]any {
	list := make([]any, 0, len(endpoints))
	for _, e := range endpoints {
		list = append(list, e)
	}
	return map[string]any{"slug": slug, "name": name, "description": description, "tags": tags, "base_url": base,
		"probe": map[string]any{"path": "/healthz", "statuses": []string{"200"}}, "endpoints": list}
}

func priced(method, path, usd, description string) map[string]any {
	return map[string]any{"method": method, "path": path, "price_usd": usd, "description": description}
}

func (s *shop) list(t *testing.T, listing map[string]any) {
	t.Helper()
	if status, answer := s.Admin(t, http.MethodPost, "/api/v1/services", listing); status != http.StatusCreated {
		t.Fatalf("list %v: %d %v", listing["slug"], status, answer)
	}
}

// openShop fills a marketplace: services in every state, one of them of somebody hostile, records, and calls that ended in different ways.
func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{World: apptest.Start(t, "MARKET_COOLDOWN=10m")}
	upstream := httptest.NewServer(http.HandlerFunc(apptest.Works))
	t.Cleanup(upstream.Close)
	current := priced("POST", "/v1/current", "0.002", "The weather of a city now")
	current["input_example"], current["output_example"] = map[string]any{"city": "Lima", "units": "metric"}, map[string]any{"city": "Lima", "temp_c": 19.5}
	current["trial_calls_per_day"], current["served_statuses"] = 5, []int{404}
	current["input_schema"] = map[string]any{"type": "object", "required": []string{"city"}, "properties": map[string]any{"city": map[string]any{"type": "string"}}}
	city := priced("GET", "/v1/city/{city}", "0.0015", "A week's forecast")
	s.list(t, listing("weather", "Open Weather", "Current weather and a week's forecast for every city that has a name, from our own stations.",
		upstream.URL, []string{"data", "weather"}, current, city))
	dear := priced("GET", "/v1", "2.5", hostileText)
	dear["input_example"], dear["output_example"] = map[string]any{"q": hostileText}, map[string]any{"a": hostileName}
	s.list(t, listing("evil", hostileName, hostileText, upstream.URL, []string{"data"}, dear))
	for n := range 20 {
		s.list(t, listing(fmt.Sprintf("service-%d", n), fmt.Sprintf("Service number %d", n), "One of many, so that there is a second page.", upstream.URL,
			[]string{"many"}, priced("GET", "/v1", "0.003", "")))
	}
	long := strings.Repeat("averylongnamethatnobodybreaks", 2)
	s.list(t, listing("long", long, strings.Repeat("Wordswithoutanyspacebetweenthem", 15), upstream.URL, []string{"many"},
		priced("GET", "/v1/"+strings.Repeat("segment/", 12)+"{id}", "0.001001", strings.Repeat("x", 300))))

	payer := s.Payer(t, 100*apptest.PriceUnits)
	ask := apptest.Asking{Method: http.MethodPost, URL: s.URL + "/s/weather/v1/current", Body: `{"city":"Lima"}`}
	s.served = s.Pay(t, payer, s.Challenge(t, ask), ask).Call()
	s.trial = s.Send(t, ask.Trial(), "").Call()
	resting := s.List(t, "resting", apptest.Fails, map[string]any{"description": "Broken inside"})
	s.refunded = s.Pay(t, payer, s.Challenge(t, apptest.Ask(resting.URL)), apptest.Ask(resting.URL)).Call()
	for slug, reason := range map[string]string{"service-0": "delisted", "service-1": "retired"} {
		s.exec(t, `UPDATE services SET state = $2, state_reason = '3 strikes within 24 h: ' || $3, state_since = market_now() WHERE slug = $1`, slug, reason, hostileName)
	}
	s.exec(t, `
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, upstream_status, latency_us,
	method, path, source, recorded_at, payer)
SELECT gen_random_uuid(), gen_random_uuid(), false, s.id, e.id, x.outcome, x.reason, x.party, 'external', x.asked,
       CASE WHEN x.asked THEN market_now() END, 200, 40000 + 400 * n, 'POST', '/v1/current', '192.0.2.1', market_now() - n * interval '90 minutes',
       decode(lpad(to_hex(n % 40), 40, '0'), 'hex')
  FROM services s JOIN endpoints e ON e.service_id = s.id AND e.path = '/v1/current',
       generate_series(1, 400) n,
       LATERAL (SELECT CASE WHEN n % 60 = 7 THEN 'failed' WHEN n % 40 = 3 THEN 'refused' ELSE 'served' END AS outcome,
                       CASE WHEN n % 60 = 7 THEN 'upstream_5xx' WHEN n % 40 = 3 THEN 'rejected_by_service' ELSE 'ok' END AS reason,
                       CASE WHEN n % 40 = 3 THEN 'caller' ELSE 'service' END AS party, true AS asked) x
 WHERE s.slug = 'weather'`)
	_, weather := s.Admin(t, http.MethodGet, "/api/v1/services/weather", nil)
	endpoints, _ := weather["endpoints"].([]any)
	first, _ := endpoints[0].(map[string]any)
	id, _ := first["id"].(string)
	if status, answer := s.Admin(t, http.MethodPatch, "/api/v1/services/weather/endpoints/"+id, map[string]any{"price_usd": "0.0025"}); status != http.StatusOK {
		t.Fatalf("change a price: %d %v", status, answer)
	}
	apptest.Eventually(t, "the refund arrives", func() bool { return s.Books(t, s.refunded).Refund == "confirmed" })
	if err := s.DB.QueryRow(t.Context(), `SELECT '0x' || encode(transaction, 'hex') FROM calls WHERE id = $1`, s.refunded).Scan(&s.transaction); err != nil {
		t.Fatal(err)
	}
	s.pending, s.parked = s.copyCall(t, s.served, openSQL), s.parkedLike(t, s.refunded)
	apptest.Eventually(t, "the catalog knows the states", func() bool {
		a := s.Send(t, apptest.Asking{Method: http.MethodGet, URL: s.URL + "/api/v1/services?status=delisted"}, "")
		return a.JSON["total"] == 1.0
	})
	return s
}

// Open calls are copies of what has ended, which nobody looks at while the test runs.
const (
	openSQL = `
INSERT INTO calls SELECT (jsonb_populate_record(c, jsonb_build_object('id', $2::uuid, 'nonce', sha256($2::text::bytea), 'state', 'unknown', 'payment_identifier', null,
       'sent_transaction', coalesce(c.transaction, c.sent_transaction), 'transaction', null, 'log_index', null, 'block_number', null, 'block_hash', null,
       'payment_state', null, 'asked_at', null, 'lease_until', market_now() + interval '1 day', 'look_at', market_now() + interval '1 day'))).*
  FROM calls c WHERE id = $1`
	againSQL = `
INSERT INTO calls SELECT (jsonb_populate_record(c, jsonb_build_object('id', $2::uuid, 'nonce', sha256($2::text::bytea),
       'log_index', c.log_index + 1000 + abs(hashtext($2::text) % 1000000), 'payment_identifier', null, 'look_at', market_now() + interval '1 day') || $3::jsonb)).*
  FROM calls c WHERE id = $1`
	endedSQL = `
INSERT INTO deliveries SELECT (jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'call_id', $2::uuid))).* FROM deliveries d WHERE call_id = $1`
	parkedSQL = `
INSERT INTO refunds SELECT (jsonb_populate_record(r, jsonb_build_object('call_id', $2::uuid, 'nonce', sha256($2::text::bytea), 'state', 'parked',
       'why', 'the treasury does not hold enough of the token', 'transaction', null, 'log_index', null, 'block_number', null, 'confirmed_at', null,
       'next_at', market_now() + interval '1 day'))).*
  FROM refunds r WHERE call_id = $1`
)

func (s *shop) copyCall(t *testing.T, from, sql string, differs ...any) string {
	t.Helper()
	id := call.NewID().String()
	s.exec(t, sql, append([]any{from, id}, differs...)...)
	return id
}

// parkedLike is a call that ended like another one, and whose refund could not be sent.
func (s *shop) parkedLike(t *testing.T, refunded string) string {
	t.Helper()
	id := s.copyCall(t, refunded, againSQL, map[string]any{})
	s.exec(t, endedSQL, refunded, id)
	s.exec(t, parkedSQL, refunded, id)
	return id
}

// inReview is a call like another one, of which nobody knows since a restore how it ended.
func (s *shop) inReview(t *testing.T, like, state string, differs map[string]any) string {
	t.Helper()
	all := map[string]any{"state": state, "review": true, "lease_until": "2026-01-01T00:00:00Z"}
	maps.Copy(all, differs)
	return s.copyCall(t, like, againSQL, all)
}

// notOnChain are the columns of a call that nothing on the chain is known of.
var notOnChain = map[string]any{"transaction": nil, "sent_transaction": nil, "log_index": nil, "block_number": nil, "block_hash": nil, "payment_state": nil, "asked_at": nil}

func (s *shop) exec(t *testing.T, sql string, arguments ...any) {
	t.Helper()
	if _, err := s.DB.Exec(t.Context(), sql, arguments...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// A view is one page in one state.
type view struct{ name, url string }

func (s *shop) views() []view {
	return []view{
		{"catalog", "/"},
		{"catalog-found", "/?query=weather&tag=data&max_price_usd=1"},
		{"catalog-found-nothing", "/?query=nothing+of+the+kind"},
		{"catalog-wrong", "/" + hostileLink + "&max_price_usd=lots&tag=%22%3E&status=odd"},
		{"catalog-delisted", "/?status=delisted"},
		{"service", "/services/weather"},
		{"service-hostile", "/services/evil"},
		{"service-long", "/services/long"},
		{"service-resting", "/services/resting"},
		{"service-delisted", "/services/service-0"},
		{"service-retired", "/services/service-1"},
		{"call-served", "/calls/" + s.served},
		{"call-refunded", "/calls/" + s.refunded},
		{"call-pending", "/calls/" + s.pending},
		{"call-parked", "/calls/" + s.parked},
		{"call-trial", "/calls/" + s.trial},
		{"calls", "/calls"},
		{"calls-found", "/calls?q=" + s.transaction},
		{"calls-nothing", "/calls?q=0x" + strings.Repeat("0", 64)},
		{"calls-wrong", "/calls" + hostileLink},
		{"rules", "/rules"},
		{"pricing", "/pricing"},
		{"pay", "/s/evil/v1" + hostileLink},
		{"not-found", "/nothing" + hostileLink},
		{"not-this-way", "/s/weather/v1/current" + hostileLink},
		{"left-the-shelf", "/s/service-0/v1"},
	}
}
