package app_test

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
)

const stageSQL = `
UPDATE calls
   SET state = $2, payment_state = $3, lease_until = market_now() + $4::interval, look_at = market_now() + interval '1 day',
       asked_at = CASE WHEN $2 = 'asked' THEN market_now() END
 WHERE id = $1`

// What a caller hears that sends its payment again, at every place where its call can stand. Only where our node has proved that the payment
// did not pay is it a 402, on which a client signs another one.
func TestStages_WhoSendsAgainHearsWhereItsCallStands(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, hasty)
	header, id := u.pay(t)
	u.AwaitBooks(t, id, apptest.Books{State: "settled", Payment: "final"})
	u.facilitator.set(deaf)

	const running, over = "20 seconds", "-1 second"
	for name, tt := range map[string]struct {
		state, payment, lease string
		status                int
		code                  string
	}{
		"settling":                                 {"settling", "final", running, http.StatusConflict, "in_progress"},
		"unclear, and somebody tries again":        {"unknown", "final", running, http.StatusServiceUnavailable, "settlement_pending"},
		"unclear, and nobody is at it":             {"unknown", "final", over, http.StatusServiceUnavailable, "settlement_pending"},
		"expired":                                  {"expired", "final", over, http.StatusServiceUnavailable, "settlement_pending"},
		"settled, and somebody is at it":           {"settled", "final", running, http.StatusConflict, "in_progress"},
		"settled, and the chain has dropped it":    {"settled", "sent", over, http.StatusServiceUnavailable, "settlement_pending"},
		"settled, and the chain has taken it back": {"settled", "lost", over, http.StatusServiceUnavailable, "settlement_pending"},
		"asked":                      {"asked", "final", running, http.StatusConflict, "in_progress"},
		"asked, and nobody is at it": {"asked", "final", over, http.StatusServiceUnavailable, "settlement_pending"},
		"rejected":                   {"rejected", "final", over, http.StatusPaymentRequired, "settle_rejected"},
	} {
		if _, err := u.DB.Exec(t.Context(), stageSQL, id, tt.state, tt.payment, tt.lease); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a := u.Send(t, u.ask, header)
		if a.Status != tt.status || a.Code() != tt.code || a.Call() != id {
			t.Errorf("%s: %d %s of call %s, want %d %s of call %s", name, a.Status, a.Code(), a.Call(), tt.status, tt.code, id)
		}
		if waits := tt.status != http.StatusPaymentRequired; (a.Header.Get("Retry-After") != "") != waits || (a.JSON["charged"] == "pending") != waits {
			t.Errorf("%s: Retry-After %q, charged %v", name, a.Header.Get("Retry-After"), a.JSON["charged"])
		}
		if a.Header.Get("PAYMENT-REQUIRED") != "" {
			t.Errorf("%s: the answer has terms to pay again", name)
		}
	}
	if u.service.Asked() != 0 {
		t.Errorf("the service was asked %d times", u.service.Asked())
	}
}
