package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"market/internal/app/apptest"
)

// b = 10 and r = c = 5 give one process a second. A second one would have no time at all, and is told so with the numbers.
func TestExposure_AProcessThatWouldMakeTheAllowanceTooShortDoesNotStart(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_EXPOSURE_USD=10", "MARKET_ADMIT_USD_PER_SECOND=5")
	err := w.Refuses(t)
	if err == nil || !strings.Contains(err.Error(), "b is 10 USD, and the n = 2 processes that run send r = 10 USD a second") {
		t.Errorf("the second process says %v, want b, r and n", err)
	}
	var rows int
	if err := w.DB.QueryRow(t.Context(), `SELECT count(*) FROM replicas`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d processes have a row (%v), want the one that runs", rows, err)
	}
	if a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.App.OpsURL() + "/readyz"}, ""); a.JSON["exposure"] != "b=10 Σr=5 n=1 allowance=1s Σc=5" {
		t.Errorf("readyz: %s", a.Body)
	}
}

// The shares of all processes are one budget.
func TestExposure_SharesAboveTheWholeDoNotStart(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_EXPOSURE_USD=200", "MARKET_EXPOSURE_SHARE=0.75")
	if err := w.Refuses(t, "MARKET_EXPOSURE_SHARE=0.5"); err == nil || !strings.Contains(err.Error(), "sum to 1.25, which is more than 1") {
		t.Errorf("a share that is too much says %v", err)
	}
}

// What costs more than goes to settlement at once is never sold: its caller is told that in words, and its owner by a warning.
func TestExposure_APriceAboveTheBurstIsNotSold(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_EXPOSURE_USD=0.1", "MARKET_ADMIT_BURST_USD=0.001")
	s := w.List(t, "dear", apptest.Works, nil)
	payer := w.Payer(t, apptest.PriceUnits)
	for name, a := range map[string]apptest.Answer{
		"an unpaid request": w.Send(t, apptest.Ask(s.URL), ""),
		"a good payment":    w.Pay(t, payer, w.Terms(t, s, 120), apptest.Ask(s.URL)),
	} {
		expect(t, name, a, http.StatusServiceUnavailable, "not_ready")
		if detail, _ := a.JSON["detail"].(string); !strings.Contains(detail, "one call costs more than this market settles at once") || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
	untouched(t, w, s)
	if status, said := w.Admin(t, http.MethodGet, "/api/v1/services/dear", nil); status != http.StatusOK || !strings.Contains(fmt.Sprint(said), "no call is sold at this price") {
		t.Errorf("its owner reads %d %v, want a warning", status, said)
	}
}
