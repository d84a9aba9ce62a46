package app_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"market/internal/app/apptest"
)

// A deskAdmin is somebody who is signed in to the admin's pages.
type deskAdmin struct {
	w      *apptest.World
	cookie *http.Cookie
	form   string // the token of the session's forms
}

var formToken = regexp.MustCompile(`name="form" value="([^"]+)"`)

func signInAtDesk(t *testing.T, w *apptest.World) *deskAdmin {
	t.Helper()
	p := &deskAdmin{w: w}
	answer, _ := p.post(t, "/admin/session", url.Values{"token": {apptest.AdminToken}})
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("sign in: %d", answer.StatusCode)
	}
	p.cookie = answer.Cookies()[0]
	_, page := p.get(t, "/admin")
	found := formToken.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the overview has no form:\n%s", page)
	}
	p.form = found[1]
	return p
}

func (p *deskAdmin) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	return p.ask(t, http.MethodGet, path, nil)
}

func (p *deskAdmin) post(t *testing.T, path string, form url.Values) (*http.Response, string) {
	t.Helper()
	if p.form != "" {
		form.Set("form", p.form)
	}
	return p.ask(t, http.MethodPost, path, form)
}

func (p *deskAdmin) ask(t *testing.T, method, path string, form url.Values) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.w.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Accept": {"text/html"}, "User-Agent": {"Mozilla/5.0"}, "Origin": {p.w.URL}, "Content-Type": {"application/x-www-form-urlencoded"}}
	if p.cookie != nil {
		r.AddCookie(p.cookie)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(page)
}

// Two admins decide about one strike: the first decision stands, and the second admin reads what the first one did. What cannot be done says so, and
// keeps what was typed.
func TestAdminPages_TheFirstDecisionStandsAndTheSecondIsToldOfIt(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_STRIKE_LIMIT=1")
	struck := w.List(t, "weather", apptest.Fails, nil)
	w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(struck.URL)), apptest.Ask(struck.URL))
	strike := w.OpenStrikes(t, "weather")[0].ID
	first, second := signInAtDesk(t, w), signInAtDesk(t, w)
	const desk = "/admin/strikes/weather"
	decide := func(p *deskAdmin, action, reason string) (*http.Response, string) {
		t.Helper()
		return p.post(t, desk, url.Values{"action": {action}, "strike": {strike}, "reason": {reason}})
	}

	if answer, page := decide(first, "void", " \n "); answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page, "Must not be empty") ||
		!strings.Contains(page, `aria-invalid="true"`) {
		t.Errorf("no reason: %d\n%s", answer.StatusCode, page)
	}
	if answer, page := first.post(t, desk, url.Values{"action": {"relist"}, "reason": {"it is\u202e repaired"}}); answer.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(page, ">it is  repaired</textarea>") {
		t.Errorf("a reason that cannot be read: %d\n%s", answer.StatusCode, page)
	}
	answer, _ := decide(first, "void", "our own\r\nresolver")
	done, ours := strings.CutPrefix(answer.Header.Get("Location"), desk+"?done=")
	if answer.StatusCode != http.StatusSeeOther || !ours {
		t.Fatalf("void: %d to %s", answer.StatusCode, answer.Header.Get("Location"))
	}
	if _, page := first.get(t, desk+"?done="+done); !strings.Contains(page, "The strike is voided. The service is for sale, with 0 of 1 strike.") {
		t.Errorf("after it was voided:\n%s", page)
	}
	// An address claims nothing by itself: a decision has to be there, and of this service.
	w.List(t, "other", apptest.Works, nil)
	for _, at := range []string{desk + "?done=void", desk + "?done=suspend", desk + "?done=" + done + "0", desk + "?done=-1", "/admin/strikes/other?done=" + done} {
		if _, page := first.get(t, at); strings.Contains(page, `class="notice good"`) {
			t.Errorf("%s says that something was decided:\n%s", at, page)
		}
	}
	answer, page := decide(second, "uphold", "it was the service")
	if answer.StatusCode != http.StatusConflict || !strings.Contains(page, "Nothing was changed.") || !strings.Contains(page, "The strike is void already, by admin token at ") ||
		!strings.Contains(page, "our own resolver") {
		t.Errorf("the second decision: %d\n%s", answer.StatusCode, page)
	}
	if answer, _ := second.post(t, desk, url.Values{"action": {"relist"}, "reason": {"it is repaired"}}); answer.StatusCode != http.StatusConflict {
		t.Errorf("what is for sale is relisted: %d", answer.StatusCode)
	}
	if answer, _ := second.post(t, desk, url.Values{"action": {"suspend"}, "reason": {"we look at it"}}); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("suspend: %d", answer.StatusCode)
	}
	stale := url.Values{"action": {"relist"}, "reason": {"it is repaired"}, "state_since": {"2026-01-02T03:04:05.000000Z"}}
	if answer, page := first.post(t, desk, stale); answer.StatusCode != http.StatusConflict || !strings.Contains(page, "The state of the service changed after you looked: it is suspended") {
		t.Errorf("relisted by a page of before: %d\n%s", answer.StatusCode, page)
	}
	if status := w.Send(t, apptest.Ask(struck.URL), "").Status; status != http.StatusServiceUnavailable {
		t.Errorf("a suspended service answers %d", status)
	}
	for what, form := range map[string]url.Values{
		"an action that is none":        {"action": {"delete"}, "strike": {strike}, "reason": {"x"}},
		"a strike that is none":         {"action": {"void"}, "strike": {"x"}, "reason": {"x"}},
		"a strike that nobody heard of": {"action": {"void"}, "strike": {"01a22bf4-c9d4-7b26-a9c9-b627dbfffa83"}, "reason": {"x"}},
	} {
		if answer, page := first.post(t, desk, form); answer.StatusCode != http.StatusNotFound || !strings.Contains(page, "<h1>") {
			t.Errorf("%s: %d\n%s", what, answer.StatusCode, page)
		}
	}
	second.form = "forged"
	if answer, _ := second.post(t, desk, url.Values{"action": {"relist"}, "reason": {"x"}}); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a forged form: %d", answer.StatusCode)
	}
}
