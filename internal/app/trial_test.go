package app_test

import (
	"net/http"
	"strconv"
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
