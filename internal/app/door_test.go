package app_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/payment"
)

// answersOfEveryKind makes one world answer with as many statuses as it can.
func answersOfEveryKind(t *testing.T, w *apptest.World) map[string]apptest.Answer {
	t.Helper()
	good := w.List(t, "good", apptest.Works, map[string]any{"trial_calls_per_day": 1})
	picky := w.List(t, "picky", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) }, nil)
	broken, slow := w.List(t, "broken", apptest.Fails, nil), w.List(t, "slow", sleeps, map[string]any{"timeout_ms": 100})
	gone := w.List(t, "gone", apptest.Works, nil)
	payer := w.Payer(t, 100*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(good.URL))
	header := w.Sign(t, payer, terms)
	pay := func(s *apptest.Service) apptest.Answer {
		return w.Pay(t, payer, w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL))
	}
	goneTerms := w.Challenge(t, apptest.Ask(gone.URL))
	if status, _ := w.Admin(t, http.MethodDelete, "/api/v1/services/gone", nil); status != http.StatusNoContent {
		t.Fatalf("retire: %d", status)
	}
	api := func(path string) apptest.Answer {
		return w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + path}, "")
	}
	answers := map[string]apptest.Answer{
		"200 served":            w.Send(t, apptest.Ask(good.URL), header),
		"200 served to a trial": w.Send(t, apptest.Ask(good.URL).Trial(), ""),
		"200 of the API":        api("/api/v1/services"),
		"200 of the front page": api("/"),
		"400 malformed payment": w.Send(t, apptest.Ask(good.URL), "!!!"),
		"400 invalid parameter": api("/api/v1/services?limit=0"),
		"400 empty input":       w.Pay(t, payer, terms, apptest.Ask(good.URL).With("")),
		"401 no admin":          w.Send(t, apptest.Asking{Method: http.MethodPost, URL: w.URL + "/api/v1/services"}, ""),
		"402 in words, for a browser": w.Send(t, apptest.Asking{Method: http.MethodPost, URL: good.URL,
			Header: http.Header{"Accept": {"text/html,*/*;q=0.8"}, "User-Agent": {"Mozilla/5.0"}}}, ""),
		"402 unpaid":                     w.Send(t, apptest.Ask(good.URL), ""),
		"402 a payer without funds":      w.Pay(t, w.Payer(t, 0), terms, apptest.Ask(good.URL)),
		"404 no such path":               w.Send(t, apptest.Ask(good.URL+"/deeper"), ""),
		"404 no such service":            w.Send(t, apptest.Ask(w.URL+"/s/nobody/work"), ""),
		"404 no such page":               api("/nowhere"),
		"405 another method":             w.Send(t, apptest.Asking{Method: http.MethodGet, URL: good.URL}, ""),
		"405 of the API":                 w.Send(t, apptest.Asking{Method: http.MethodPut, URL: w.URL + "/"}, ""),
		"409 payment of another request": w.Send(t, apptest.Ask(good.URL).With(`{"n":2}`), header),
		"410 retired":                    w.Pay(t, payer, goneTerms, apptest.Ask(gone.URL)),
		"413 too much input":             w.Pay(t, payer, terms, apptest.Ask(good.URL).With(strings.Repeat(" ", 1<<20+1))),
		"418 of the service":             pay(picky),
		"422 input refused":              w.Pay(t, payer, terms, apptest.Ask(good.URL).With(`{"n":"x"}`)),
		"429 no trial left":              w.Send(t, apptest.Ask(good.URL).Trial(), ""),
		"502 failed":                     pay(broken),
		"504 too late":                   pay(slow),
	}
	apptest.Eventually(t, "the gate of the broken service closes", func() bool {
		answers["503 cooling down"] = w.Send(t, apptest.Ask(broken.URL), "")
		return answers["503 cooling down"].Status == http.StatusServiceUnavailable
	})
	// Our own failure: a table is missing for a moment.
	for _, sql := range []string{`ALTER TABLE services RENAME TO elsewhere`, `ALTER TABLE elsewhere RENAME TO services`} {
		if _, err := w.DB.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if answers["500 of ours"].Status == 0 {
			answers["500 of ours"] = api("/api/v1/services/good")
		}
	}
	return answers
}

// B140, B141, B146: a browser can read every answer, and nobody may keep one.
func TestDoor_EveryAnswerIsReadableByScriptsAndKeptByNobody(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	answers := answersOfEveryKind(t, w)
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		a := answers[name]
		if !strings.HasPrefix(name, strconv.Itoa(a.Status)) {
			t.Errorf("%s: got %d %s", name, a.Status, a.Body)
		}
		if got := a.Header.Values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{"*"}) {
			t.Errorf("%s: Access-Control-Allow-Origin is %q", name, got)
		}
		exposed := strings.Split(strings.ToLower(a.Header.Get("Access-Control-Expose-Headers")), ", ")
		for _, header := range []string{"payment-required", "payment-response", "x-payment-response", "market-call", "market-outcome", "retry-after"} {
			if !slices.Contains(exposed, header) {
				t.Errorf("%s: %s is not exposed, only %q", name, header, exposed)
			}
		}
		if !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
			t.Errorf("%s: Cache-Control is %q", name, a.Header.Get("Cache-Control"))
		}
		if a.Status < 400 || a.Status == http.StatusPaymentRequired {
			continue
		}
		if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: Content-Type is %q", name, got)
		}
		for _, member := range []string{"type", "title", "status", "code", "party", "charged"} {
			if _, ok := a.JSON[member]; !ok {
				t.Errorf("%s: the problem has no member %s: %s", name, member, a.Body)
			}
		}
	}
	inWords, inJSON := answers["402 in words, for a browser"], answers["402 unpaid"]
	if !strings.HasPrefix(inWords.Header.Get("Content-Type"), "text/html") || inWords.Header.Get(payment.HeaderRequired) != inJSON.Header.Get(payment.HeaderRequired) {
		t.Errorf("a browser gets %s, and other terms than a program", inWords.Header.Get("Content-Type"))
	}
	for _, a := range []apptest.Answer{inWords, inJSON, answers["200 served"]} {
		if got := a.Header.Get("Vary"); !strings.Contains(got, "Accept, User-Agent") || !strings.Contains(got, "PAYMENT-SIGNATURE") {
			t.Errorf("%d: Vary is %q", a.Status, got)
		}
	}
	if a := answers["500 of ours"]; strings.Contains(string(a.Body), "relation") || a.Code() != "internal" || a.JSON["party"] != "platform" {
		t.Errorf("our own failure is told as %s", a.Body)
	}
}

// B143: a preflight costs nothing, claims nothing and is answered by us.
func TestDoor_APreflightIsFreeAndReachesNoService(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "preflight", apptest.Works, map[string]any{"trial_calls_per_day": 1})
	paid := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))
	ask := http.Header{"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"POST"},
		"Access-Control-Request-Headers": {"payment-signature, content-type, access-control-expose-headers"}}
	for name, tt := range map[string]struct{ url, payment string }{
		"of a paid call":                 {s.URL, ""},
		"with a payment":                 {s.URL, paid},
		"of a trial call":                {apptest.Ask(s.URL).Trial().URL, ""},
		"of a path that nobody lists":    {s.URL + "/deeper", ""},
		"of the API":                     {w.URL + "/api/v1/services", ""},
		"of an address with two slashes": {strings.Replace(s.URL, "/s/", "//s//", 1), ""},
	} {
		a := w.Send(t, apptest.Asking{Method: http.MethodOptions, URL: tt.url, Header: ask}, tt.payment)
		if a.Status != http.StatusNoContent || len(a.Body) != 0 || a.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %q, origin %q", name, a.Status, a.Body, a.Header.Get("Access-Control-Allow-Origin"))
		}
		if got := a.Header.Get("Access-Control-Allow-Methods"); !strings.Contains(got, "POST") || !strings.Contains(got, "DELETE") {
			t.Errorf("%s: methods are %q", name, got)
		}
		allowed := strings.ToLower(a.Header.Get("Access-Control-Allow-Headers"))
		for _, header := range []string{"payment-signature", "x-payment", "content-type", "authorization", "access-control-expose-headers"} {
			if !slices.Contains(strings.Split(allowed, ", "), header) {
				t.Errorf("%s: %s may not be sent, only %s", name, header, allowed)
			}
		}
	}
	if s.Asked() != 0 || s.Probed() != 0 || w.Rows(t) != (apptest.Rows{}) {
		t.Errorf("the service was asked %d and probed %d times, rows %+v", s.Asked(), s.Probed(), w.Rows(t))
	}
	if a := w.Send(t, apptest.Ask(s.URL), paid); a.Status != http.StatusOK {
		t.Errorf("the payment after its preflight: %d %s", a.Status, a.Body)
	}
}

// HEAD and GET are two things to sell: one is not an unpaid look at the other.
func TestDoor_OnlyDeclaredMethodsAreSold(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	get := map[string]any{"method": "GET", "path": "/work", "input_schema": map[string]any{}, "input_example": map[string]any{}}
	head := map[string]any{"method": "HEAD", "path": "/work", "input_schema": map[string]any{}, "input_example": map[string]any{}}
	s, looks := w.List(t, "gets", apptest.Works, get), w.List(t, "looks", apptest.Works, head)
	payer := w.Payer(t, 10*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Asking{Method: http.MethodGet, URL: s.URL})

	for _, method := range []string{"HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW", "get", "PROPFIND"} {
		for what, header := range map[string]string{"unpaid": "", "paid": w.Sign(t, payer, terms)} {
			a := w.Send(t, apptest.Asking{Method: method, URL: s.URL}, header)
			if a.Status != http.StatusMethodNotAllowed {
				t.Errorf("%s, %s: %d %s, want 405", method, what, a.Status, a.Body)
			}
			if got := a.Header.Get("Allow"); !strings.Contains(got, "GET") {
				t.Errorf("%s, %s: Allow is %q", method, what, got)
			}
		}
	}
	if s.Asked() != 0 || w.Rows(t) != (apptest.Rows{}) {
		t.Errorf("the service was asked %d times, rows %+v", s.Asked(), w.Rows(t))
	}

	look := apptest.Asking{Method: http.MethodHead, URL: looks.URL}
	a := w.Send(t, look, "")
	if a.Status != http.StatusPaymentRequired || len(a.Body) != 0 {
		t.Fatalf("an unpaid HEAD of an endpoint that sells it: %d %q", a.Status, a.Body)
	}
	if a = w.Pay(t, payer, w.Challenge(t, look), look); a.Status != http.StatusOK || len(a.Body) != 0 || a.Outcome() != "served" {
		t.Errorf("a paid HEAD: %d %q, outcome %s", a.Status, a.Body, a.Outcome())
	}
}

// An unpaid request is answered from memory: it asks nobody and leaves nothing behind, whatever it is answered.
func TestDoor_UnpaidRequestsWriteNoRows(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_PROBE_TTL=10m")
	good, broken := w.List(t, "fine", apptest.Works, nil), w.List(t, "cooling", apptest.Fails, nil)
	dead, gone := w.List(t, "dead", apptest.Works, nil), w.List(t, "retired", apptest.Works, nil)
	payer := w.Payer(t, 10*apptest.PriceUnits)
	expect(t, "the failure", w.Pay(t, payer, w.Challenge(t, apptest.Ask(broken.URL)), apptest.Ask(broken.URL)), http.StatusBadGateway, "upstream_5xx")
	dead.SetLive(false)
	expect(t, "the probe", w.Pay(t, payer, w.Challenge(t, apptest.Ask(dead.URL)), apptest.Ask(dead.URL)), http.StatusServiceUnavailable, "not_live")
	if status, _ := w.Admin(t, http.MethodDelete, "/api/v1/services/retired", nil); status != http.StatusNoContent {
		t.Fatalf("retire: %d", status)
	}
	apptest.Eventually(t, "the gate of the broken service closes", func() bool {
		return w.Send(t, apptest.Ask(broken.URL), "").Status == http.StatusServiceUnavailable
	})
	before, asked, probed := w.Rows(t), good.Asked()+broken.Asked()+dead.Asked()+gone.Asked(), good.Probed()+dead.Probed()

	// B131: what is asked is not looked at before somebody pays, so the offer is seen with any body or none.
	for name, body := range map[string]string{
		"no body": "", "a good body": `{"n":1}`, "garbage": "\x00\xff{[", "the wrong type": `"n"`, "a long body": strings.Repeat("x", 2<<20),
	} {
		a := w.Send(t, apptest.Ask(good.URL).With(body), "")
		expect(t, name, a, http.StatusPaymentRequired, "payment_required")
		if a.Header.Get(payment.HeaderRequired) == "" {
			t.Errorf("%s: the 402 has no terms", name)
		}
	}
	cooling := w.Send(t, apptest.Ask(broken.URL), "")
	expect(t, "a service that cools down", cooling, http.StatusServiceUnavailable, "in_cooldown")
	notLive := w.Send(t, apptest.Ask(dead.URL), "")
	expect(t, "a service that is not live", notLive, http.StatusServiceUnavailable, "not_live")
	for name, a := range map[string]apptest.Answer{"cooling": cooling, "not live": notLive} {
		if a.Header.Get("Retry-After") == "" || a.Header.Get(payment.HeaderRequired) != "" {
			t.Errorf("%s: Retry-After %q, terms %q", name, a.Header.Get("Retry-After"), a.Header.Get(payment.HeaderRequired))
		}
	}
	expect(t, "a service that is retired", w.Send(t, apptest.Ask(gone.URL), ""), http.StatusGone, "not_listed")
	expect(t, "no such path", w.Send(t, apptest.Ask(good.URL+"/x"), ""), http.StatusNotFound, "not_found")
	expect(t, "another method", w.Send(t, apptest.Asking{Method: http.MethodGet, URL: good.URL}, ""), http.StatusMethodNotAllowed, "method_not_allowed")

	if after := w.Rows(t); after != before {
		t.Errorf("rows were %+v and are %+v", before, after)
	}
	if got := good.Asked() + broken.Asked() + dead.Asked() + gone.Asked(); got != asked {
		t.Errorf("services were asked %d times by unpaid requests", got-asked)
	}
	if got := good.Probed() + dead.Probed(); got != probed {
		t.Errorf("services were probed %d times while the verdict was fresh", got-probed)
	}
}
