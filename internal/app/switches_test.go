package app_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/watch"
)

// throw sets a switch by the admin token, and wants it to be taken.
func throw(t *testing.T, w *apptest.World, order map[string]any) {
	t.Helper()
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/switches", order); status != http.StatusOK || answer["on"] != order["on"] || answer["by"] != "admin token" {
		t.Fatalf("%v: %d %v", order, status, answer)
	}
}

// A switch that is set on one process holds on another.
func TestSwitches_StoppedPaymentsAreRefusedOnEveryProcessAndKnownCallsAreAnswered(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Options: []app.Option{app.WithPace(impatient)}})
	second := w.Replica(t)
	s := w.List(t, "weather", apptest.Works, map[string]any{"trial_calls_per_day": 5})
	payer := w.Payer(t, 3*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	known, fresh := w.Sign(t, payer, terms), w.Sign(t, payer, terms)
	if a := w.Send(t, apptest.Ask(s.URL), known); a.Status != http.StatusOK {
		t.Fatalf("a paid call: %d %s", a.Status, a.Body)
	}
	network := terms.Accepts[0].Network
	throw(t, w, map[string]any{"stop_402": network, "on": true, "reason": "the token is being upgraded"})

	for name, at := range map[string]apptest.Asking{"on this process": apptest.Ask(s.URL), "on the other one": second.At(t, apptest.Ask(s.URL))} {
		apptest.Eventually(t, "nobody is asked to pay "+name, func() bool { return w.Send(t, at, "").Status == http.StatusServiceUnavailable })
		for what, header := range map[string]string{"an unpaid request": "", "a new payment": fresh} {
			a := w.Send(t, at, header)
			if a.Status != http.StatusServiceUnavailable || a.JSON["code"] != "not_ready" || a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.Body), "the operator has stopped new payments") ||
				strings.Contains(string(a.Body), "upgraded") || a.JSON["charged"] != false {
				t.Errorf("%s %s: %d %s", what, name, a.Status, a.Body)
			}
		}
		if a := w.Send(t, at, known); a.Status != http.StatusOK {
			t.Errorf("a payment that is known %s: %d %s", name, a.Status, a.Body)
		}
	}
	var text string
	apptest.Eventually(t, "the operator is told", func() (is bool) {
		var open int
		open, _, text = noticed(t, w, "payments_stopped")
		return open == 1
	})
	if !strings.Contains(text, network) || !strings.Contains(text, "the token is being upgraded") {
		t.Errorf("told is %q", text)
	}
	throw(t, w, map[string]any{"stop_402": network, "on": false, "reason": "it is done"})
	apptest.Eventually(t, "the other process asks to pay again", func() bool {
		return w.Send(t, second.At(t, apptest.Ask(s.URL)), "").Status == http.StatusPaymentRequired
	})
	if a := w.Send(t, second.At(t, apptest.Ask(s.URL)), fresh); a.Status != http.StatusOK {
		t.Errorf("the payment that was refused: %d %s", a.Status, a.Body)
	}
	apptest.Eventually(t, "it is over", func() bool { open, over, _ := noticed(t, w, "payments_stopped"); return open == 0 && over == 1 })
	if open, over, text := noticed(t, w, "network_not_ready"); open+over > 0 {
		t.Errorf("the network has a notice beside that of the switch: %s", text)
	}
}

func TestSwitches_AWholeFleetStrikesNobodyWhileStrikesAreSuspended(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Options: []app.Option{app.WithPace(watch.UsualPace)}}, "MARKET_STRIKE_LIMIT=1")
	second := w.Replica(t)
	s := w.List(t, "weather", apptest.Fails, nil)
	payer := w.Payer(t, 3*apptest.PriceUnits)
	throw(t, second, map[string]any{"suspend_strikes": true, "on": true, "reason": "our proxy answers"})
	for _, at := range []apptest.Asking{apptest.Ask(s.URL), second.At(t, apptest.Ask(s.URL))} {
		a := w.Pay(t, payer, w.Challenge(t, at), at)
		if a.Status != http.StatusBadGateway || a.JSON["party"] != "service" || a.JSON["charged"] != false {
			t.Errorf("a call that fails: %d %s", a.Status, a.Body)
		}
	}
	if rest, strikes := w.Rest(t, "weather"), w.OpenStrikes(t, "weather"); rest != 0 || len(strikes) != 0 {
		t.Errorf("it rests for %s, with strikes %+v", rest, strikes)
	}
	throw(t, w, map[string]any{"suspend_strikes": true, "on": false, "reason": "it is mended"})
	w.Pay(t, payer, w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL))
	if _, service := w.Admin(t, http.MethodGet, "/api/v1/services/weather", nil); service["state"] != "delisted" {
		t.Errorf("once they count again: %v", service["state"])
	}
}

func TestSwitches_ThePageSaysWhoAndWhyAndAsksTwice(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	p := signInAtDesk(t, w)
	form := func(change map[string]string) url.Values {
		v := url.Values{"switch": {"suspend_strikes"}, "on": {"on"}, "reason": {"our proxy <b>answers</b>"}, "sure": {"yes"}}
		for name, value := range change {
			v.Set(name, value)
		}
		return v
	}
	for what, tt := range map[string]struct {
		change map[string]string
		status int
		says   string
	}{
		"not sure":       {map[string]string{"sure": ""}, http.StatusUnprocessableEntity, "Say that you have read what it does"},
		"without reason": {map[string]string{"reason": " "}, http.StatusUnprocessableEntity, "aria-invalid"},
		"another switch": {map[string]string{"switch": "stop_402 eip155:1"}, http.StatusNotFound, ""},
		"set to nothing": {map[string]string{"on": ""}, http.StatusNotFound, ""},
		"off already":    {map[string]string{"on": "off"}, http.StatusConflict, "Nothing was changed."},
	} {
		if answer, page := p.post(t, "/admin/switches", form(tt.change)); answer.StatusCode != tt.status || !strings.Contains(page, tt.says) {
			t.Errorf("%s: %d\n%s", what, answer.StatusCode, page)
		}
	}
	done, _ := p.post(t, "/admin/switches", form(nil))
	if done.StatusCode != http.StatusSeeOther {
		t.Fatalf("set: %d", done.StatusCode)
	}
	_, page := p.get(t, done.Header.Get("Location"))
	for _, want := range []string{"Strikes and cooldowns: it is stopped now.", "1 switch is on", "our proxy &lt;b&gt;answers&lt;/b&gt;", "by admin token", "No payout is signed or sent", "Let it go on"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if _, home := p.get(t, "/admin"); !strings.Contains(home, `<a href="/admin/switches"><strong>1</strong> switches on</a>`) {
		t.Errorf("the overview does not say that a switch is on:\n%s", home)
	}
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/switches", map[string]any{"stop_402": "eip155:1", "on": true, "reason": "x"}); status != http.StatusUnprocessableEntity {
		t.Errorf("a network that is not configured: %d %v", status, answer)
	}
	_, audit := w.Admin(t, http.MethodGet, "/api/v1/admin/audit", nil)
	entry := audit["items"].([]any)[0].(map[string]any) //nolint:forcetypeassert,errcheck // the API's document says so
	if entry["action"] != "switched_on" || entry["subject"] != "suspend_strikes" || entry["by"] != "admin token" {
		t.Errorf("the audit has %v", entry)
	}
}

// The role is the database's, so it ends with the next request; and what an admin does by a wallet is kept under its name.
func TestAdmins_AWalletActsUnderItsNameAndTheLastOneKeepsTheRole(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	chief, other := tenantOf(t, w), tenantOf(t, w)
	role := func(by *tenant, of common.Address, on bool) apptest.Answer {
		return by.ask(t, http.MethodPost, "/api/v1/admin/admins", map[string]any{"wallet": of.Hex(), "on": on, "reason": "for the test"})
	}
	if a := role(chief, chief.address, true); a.Status != http.StatusForbidden {
		t.Fatalf("by nobody: %d", a.Status)
	}
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/admins", map[string]any{"wallet": strings.ToLower(chief.address.Hex()), "on": true, "reason": "x"}); status != http.StatusOK || answer["on"] != true {
		t.Fatalf("%d %v", status, answer)
	}
	if a := role(chief, other.address, true); a.Status != http.StatusOK {
		t.Fatalf("by an admin's wallet: %d %s", a.Status, a.Body)
	}
	if a := role(other, other.address, true); a.Status != http.StatusConflict {
		t.Errorf("what is so already: %d %s", a.Status, a.Body)
	}
	accounts := other.want(t, http.StatusOK, http.MethodGet, "/api/v1/admin/accounts?wallet="+chief.address.Hex(), nil)
	one := accounts["items"].([]any)[0].(map[string]any) //nolint:forcetypeassert,errcheck // the API's document says so
	if one["admin"] != true || one["plan"] != "free" || one["plan_kept"] != "" {
		t.Errorf("the account is %v", one)
	}
	path := "/api/v1/admin/accounts/" + one["id"].(string) + "/plan" //nolint:forcetypeassert,errcheck // the API's document says so
	if set := other.want(t, http.StatusOK, http.MethodPost, path, map[string]any{"plan": "pro", "reason": "invoice 4711"}); set["plan"] != "pro" {
		t.Errorf("the plan is %v", set)
	}
	other.want(t, http.StatusConflict, http.MethodPost, path, map[string]any{"plan": "pro", "reason": "again"})
	other.want(t, http.StatusUnprocessableEntity, http.MethodPost, path, map[string]any{"plan": "gold", "reason": "again"})
	_, kept := w.Admin(t, http.MethodGet, "/api/v1/admin/audit?limit=2", nil)
	var said []string
	for _, item := range kept["items"].([]any) { //nolint:forcetypeassert,errcheck // the API's document says so
		e := item.(map[string]any) //nolint:forcetypeassert,errcheck // the API's document says so
		said = append(said, e["action"].(string)+" by "+e["by"].(string))
	}
	if want := "plan_set by wallet " + other.address.Hex() + ", admin_granted by wallet " + chief.address.Hex(); strings.Join(said, ", ") != want {
		t.Errorf("the audit says %q, want %q", said, want)
	}

	p := signInAtDesk(t, w)
	if _, page := p.get(t, "/admin/admins"); strings.Count(page, "Take the role from it …") != 2 || !strings.Contains(page, other.address.Hex()) {
		t.Errorf("the page of admins:\n%s", page)
	}
	if done, _ := p.post(t, "/admin/admins", url.Values{"wallet": {chief.address.Hex()}, "on": {"off"}, "reason": {"has left"}}); done.StatusCode != http.StatusSeeOther {
		t.Errorf("taken at the desk: %d", done.StatusCode)
	}
	if a := role(chief, other.address, false); a.Status != http.StatusForbidden {
		t.Errorf("after it was taken the role still works: %d", a.Status)
	}
	if _, page := p.get(t, "/admin/accounts?wallet="+chief.address.Hex()); !strings.Contains(page, "<strong>Pro</strong>") {
		t.Errorf("the page of accounts:\n%s", page)
	}
	if _, page := p.get(t, "/admin/accounts?wallet=0x12"); !strings.Contains(page, "wallet-error") {
		t.Errorf("a wallet of no form:\n%s", page)
	}
}
