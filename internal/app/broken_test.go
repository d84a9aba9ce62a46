package app_test

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
)

// A key that is lost is the operator's trouble: a paid call waits for it within the grace, and no service is asked without its secret and blamed.
func TestBroken_ASettledCallWaitsUntilItsServiceCanBeAskedAgain(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, hasty)
	header, id := u.pay(t)
	u.AwaitBooks(t, id, apptest.Books{State: "settled", Payment: "final"})
	turn := func(want int) { // each time, what is sealed cannot be opened, or can again
		t.Helper()
		if _, err := u.DB.Exec(t.Context(), `UPDATE service_secrets SET sealed = set_byte(sealed, 0, 255 - get_byte(sealed, 0))`); err != nil {
			t.Fatal(err)
		}
		apptest.Eventually(t, "the key is lost, or back", func() bool { return u.Send(t, u.ask, "").Status == want })
	}
	turn(http.StatusServiceUnavailable)
	a := u.Send(t, u.ask, header)
	wantPending(t, "the retry while the key is lost", a)
	if u.service.Asked() != 0 || len(u.OpenStrikes(t, u.service.Slug)) != 0 {
		t.Errorf("the service was asked %d times and has strikes %v", u.service.Asked(), u.OpenStrikes(t, u.service.Slug))
	}
	turn(http.StatusPaymentRequired)
	if a := u.Send(t, u.ask, header); a.Status != http.StatusOK || a.Call() != id {
		t.Errorf("the retry when the key is back: %d %s", a.Status, a.Body)
	}
	wantMoved(t, u.World, 1, 0)
}
