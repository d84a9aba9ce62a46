package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/app/apptest"
)

func TestTrial_IsOfferedOnlyWhereTheListingSaysSo(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "no-trial", apptest.Works, nil)
	expect(t, "a trial that nobody offers", w.Send(t, apptest.Ask(s.URL).Trial(), ""), http.StatusNotFound, "not_found")
	expect(t, "with bad input", w.Send(t, apptest.Ask(s.URL).Trial().With("garbage"), ""), http.StatusNotFound, "not_found")
	untouched(t, w, s)
}

// Neither many callers at once nor the same one again get more than the day's allowance, and the day is UTC.
func TestTrial_ADayHasItsAllowanceAndNotOneMore(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	w.ShiftInto(t, "day", 24*time.Hour, 12*time.Hour)
	const allowance, callers = 5, 20
	s := w.List(t, "tried", apptest.Works, map[string]any{"trial_calls_per_day": allowance})
	other := w.List(t, "untried", apptest.Works, map[string]any{"trial_calls_per_day": 1})
	day := func(name string) {
		t.Helper()
		var (
			wg     sync.WaitGroup
			served atomic.Int64
		)
		for range callers {
			wg.Go(func() {
				switch a := w.Send(t, apptest.Ask(s.URL).Trial(), ""); {
				case a.Status == http.StatusOK && a.Outcome() == "served" && a.Header.Get("PAYMENT-RESPONSE") == "":
					served.Add(1)
				case a.Status == http.StatusTooManyRequests && a.Code() == "trial_exhausted":
					wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
					if rest := time.Duration(wait) * time.Second; err != nil || rest < 11*time.Hour || rest > 12*time.Hour {
						t.Errorf("%s: Retry-After is %q at noon, want the seconds to midnight", name, a.Header.Get("Retry-After"))
					}
				default:
					t.Errorf("%s: a trial ended %d %s", name, a.Status, a.Body)
				}
			})
		}
		wg.Wait()
		if served.Load() != allowance {
			t.Errorf("%s: %d trials were served, want %d", name, served.Load(), allowance)
		}
	}
	day("the first day")
	if s.Asked() != allowance {
		t.Errorf("the service was asked %d times on the first day", s.Asked())
	}
	if a := w.Send(t, apptest.Ask(other.URL).Trial(), ""); a.Status != http.StatusOK {
		t.Errorf("the trial of another endpoint: %d %s", a.Status, a.Body)
	}
	w.Shift(t, 24*time.Hour)
	day("the next day")
	if s.Asked() != 2*allowance {
		t.Errorf("the service was asked %d times in two days", s.Asked())
	}
}

// What never reaches the service takes nothing of the allowance.
func TestTrial_ARefusalBeforeTheServiceIsAskedTakesNone(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	w.ShiftInto(t, "day", 24*time.Hour, 12*time.Hour)
	s := w.List(t, "spared", apptest.Fails, map[string]any{"trial_calls_per_day": 2})
	trial := apptest.Ask(s.URL).Trial()

	expect(t, "no input", w.Send(t, trial.With(""), ""), http.StatusBadRequest, "input_empty")
	expect(t, "bad input", w.Send(t, trial.With(`{"n":"x"}`), ""), http.StatusUnprocessableEntity, "input_invalid")
	s.SetLive(false)
	expect(t, "a dead service", w.Send(t, trial, ""), http.StatusServiceUnavailable, "not_live")
	s.SetLive(true)
	if rows := w.Rows(t); rows.Trials != 0 || s.Asked() != 0 {
		t.Errorf("%d trials are taken, the service was asked %d times", rows.Trials, s.Asked())
	}

	failed := w.Send(t, trial, "")
	expect(t, "a failure", failed, http.StatusBadGateway, "upstream_5xx")
	if failed.JSON["charged"] != false || failed.JSON["refund"] != nil {
		t.Errorf("a trial that failed: charged %v, refund %v", failed.JSON["charged"], failed.JSON["refund"])
	}
	if record := w.Record(t, failed.Call()); record.JSON["trial"] != true || record.JSON["outcome"] != "failed" || record.JSON["payment"] != nil {
		t.Errorf("its record is %s", record.Body)
	}
	s.Do(apptest.Works)
	expect(t, "a service that cools down", w.Send(t, trial, ""), http.StatusServiceUnavailable, "in_cooldown")
	if rows := w.Rows(t); rows.Trials != 1 || s.Asked() != 1 {
		t.Errorf("%d trials are taken and the service was asked %d times, want the failure alone", rows.Trials, s.Asked())
	}
	w.Shift(t, 61*time.Second)
	if a := w.Send(t, trial, ""); a.Status != http.StatusOK {
		t.Errorf("the second trial: %d %s", a.Status, a.Body)
	}
	expect(t, "the third", w.Send(t, trial, ""), http.StatusTooManyRequests, "trial_exhausted")
}

// A trial is free to ask for, so what its refusals leave behind is bounded, as for any other refusal.
func TestTrial_RefusalsInACooldownLeaveABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	w.ShiftInto(t, "minute", time.Minute, time.Second)
	s := w.List(t, "flooded", apptest.Fails, map[string]any{"trial_calls_per_day": 1000})
	trial := apptest.Ask(s.URL).Trial()
	expect(t, "a failure", w.Send(t, trial, ""), http.StatusBadGateway, "upstream_5xx")
	before := w.Rows(t)
	const trials = 80
	for range trials {
		expect(t, "a trial in the cooldown", w.Send(t, trial, ""), http.StatusServiceUnavailable, "in_cooldown")
	}
	after := w.Rows(t)
	if kept := after.Deliveries - before.Deliveries; kept != 60 || after.Refusals-before.Refusals != trials {
		t.Errorf("%d trials left %d rows and a count of %d, want 60 and %d", trials, kept, after.Refusals-before.Refusals, trials)
	}
}

// What one caller gets is counted for its network and for its wallet, whichever has less; and what is left is said before and after.
func TestTrial_ACallerHasItsShareByNetworkAndByWallet(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8")
	w.ShiftInto(t, "day", 24*time.Hour, 12*time.Hour)
	s := w.List(t, "shared", apptest.Works, map[string]any{"trial_calls_per_day": 5, "trial_calls_per_caller": 2})
	trial := apptest.Ask(s.URL).Trial()
	key, wallet := apptest.NewKey(t)
	const home, neighbour, work, cafe = "198.51.100.7", "198.51.100.8", "203.0.113.9", "192.0.2.1"
	signedIn := func(address string) apptest.Asking {
		a := from(trial, address)
		a.Header.Set("SIGN-IN-WITH-X", signIn(t, w.URL, key, wallet.Address().Hex()))
		return a
	}
	served := func(what string, a apptest.Answer, left string) {
		t.Helper()
		if a.Status != http.StatusOK || a.Header.Get("Market-Trial-Left") != left {
			t.Errorf("%s: %d, %q left, want %s: %s", what, a.Status, a.Header.Get("Market-Trial-Left"), left, a.Body)
		}
	}
	refused := func(what string, a apptest.Answer, who string) {
		t.Helper()
		expect(t, what, a, http.StatusTooManyRequests, "trial_exhausted")
		midnight := strings.SplitAfter(a.JSON["detail"].(string), "new ones from ")[1]
		if !strings.Contains(a.JSON["detail"].(string), who) || !strings.HasSuffix(midnight, "T00:00:00Z on") || a.Header.Get("Market-Trial-Left") != "0" ||
			a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %q, %s left, again after %s", what, a.JSON["detail"], a.Header.Get("Market-Trial-Left"), a.Header.Get("Retry-After"))
		}
	}
	shown := func(what, address string, left, forYou float64) {
		t.Helper()
		a := w.Send(t, from(apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/shared"}, address), "")
		got := a.JSON["endpoints"].([]any)[0].(map[string]any)["trial"].(map[string]any)
		if got["calls_per_day"] != 5. || got["calls_per_caller"] != 2. || got["left_today"] != left || got["left_for_you"] != forYou ||
			!strings.HasSuffix(got["resets_at"].(string), "T00:00:00.000000Z") {
			t.Errorf("%s the service shows %v, want %v left, %v for it", what, got, left, forYou)
		}
	}
	shown("at first", home, 5, 2)
	served("the first", w.Send(t, from(trial, home), ""), "1")
	shown("to its network", neighbour, 4, 1)
	shown("to another", work, 4, 2)
	served("the second, signed in", w.Send(t, signedIn(neighbour), ""), "0")
	refused("the network's third", w.Send(t, from(trial, home), ""), "your network 198.51.100.0/24 has 2 a day")
	refused("and with a wallet", w.Send(t, signedIn(home), ""), "your network 198.51.100.0/24 has 2 a day")
	served("the wallet's second", w.Send(t, signedIn(work), ""), "0")
	refused("the wallet's third", w.Send(t, signedIn(cafe), ""), "your wallet "+wallet.Address().Hex()+" has 2 a day")
	served("without it", w.Send(t, from(trial, cafe), ""), "1")
	served("the last one of the day", w.Send(t, from(trial, cafe), ""), "0")
	refused("everybody's sixth", w.Send(t, from(trial, work), ""), "all callers together have 5 a day")
	shown("in the end", work, 0, 0)
	if s.Asked() != 5 {
		t.Errorf("the service was asked %d times, want 5", s.Asked())
	}
	page := from(apptest.Asking{Method: http.MethodGet, URL: w.URL + "/services/shared"}, work)
	page.Header.Set("Accept", "text/html")
	if body := string(w.Send(t, page, "").Body); !strings.Contains(body, "at most 2 for one caller") || !strings.Contains(body, "none is left today") {
		t.Errorf("the page does not say what there is to try: %s", body)
	}
	w.Shift(t, 24*time.Hour)
	served("the next day", w.Send(t, signedIn(home), ""), "1")
}

// A sign-in that does not hold is told and not passed over: its caller would believe that it counts as somebody.
func TestTrial_ASignInHoldsOrIsRefusedAndIsUsedOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "signed", apptest.Works, map[string]any{"trial_calls_per_day": 5, "trial_calls_per_caller": 3})
	key, wallet := apptest.NewKey(t)
	_, other := apptest.NewKey(t)
	with := func(values ...string) apptest.Asking {
		a := apptest.Ask(s.URL).Trial()
		a.Header = http.Header{"SIGN-IN-WITH-X": values}
		return a
	}
	good := signIn(t, w.URL, key, wallet.Address().Hex())
	for what, tt := range map[string]struct {
		header []string
		code   string
	}{
		"no base64":        {[]string{"leak-me!"}, "invalid_siwx_header"},
		"for another site": {[]string{signIn(t, "http://other.example", key, wallet.Address().Hex())}, "invalid_siwx_domain_mismatch"},
		"by somebody else": {[]string{signIn(t, w.URL, key, other.Address().Hex())}, "invalid_siwx_signature"},
		"there two times":  {[]string{good, good}, "invalid_siwx_header"},
		"empty":            {[]string{""}, "invalid_siwx_header"},
	} {
		a := w.Send(t, with(tt.header...), "")
		expect(t, what, a, http.StatusUnauthorized, "unauthorized")
		if detail := a.JSON["detail"].(string); !strings.Contains(detail, tt.code) || strings.Contains(detail, "leak-me") {
			t.Errorf("%s: %q, want %s in it", what, detail, tt.code)
		}
	}
	untouched(t, w, s)

	if a := w.Send(t, with(good), ""); a.Status != http.StatusOK || a.Header.Get("Market-Trial-Left") != "2" {
		t.Fatalf("signed in: %d, %s left: %s", a.Status, a.Header.Get("Market-Trial-Left"), a.Body)
	}
	again := w.Send(t, with(good), "")
	expect(t, "the same sign-in again", again, http.StatusUnauthorized, "unauthorized")
	if again.Header.Get("Market-Trial-Left") != "2" {
		t.Errorf("it took one: %s left", again.Header.Get("Market-Trial-Left"))
	}
	if rows := w.Rows(t); rows.Trials != 1 || s.Asked() != 1 {
		t.Errorf("%d trials are taken and the service was asked %d times, want one", rows.Trials, s.Asked())
	}
}
