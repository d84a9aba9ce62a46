package server

import (
	"testing"

	"market/internal/call"
)

func TestStatusOf_EveryReasonHasOne(t *testing.T) {
	t.Parallel()
	known := map[call.Reason]bool{}
	for _, r := range call.Reasons() {
		known[r] = true
		if statusOf[r] == 0 {
			t.Errorf("%s has no HTTP status", r)
		}
	}
	for r := range statusOf {
		if !known[r] {
			t.Errorf("%s has an HTTP status and is no reason", r)
		}
	}
}

func TestStatusOf_OnlyWhatProvablyDidNotPayInvitesAnotherPayment(t *testing.T) {
	t.Parallel()
	may := map[call.Reason]bool{
		call.PaymentRequired: true, call.PaymentMismatch: true, call.PaymentInvalid: true, call.PayerUnfunded: true, call.SettleRejected: true,
	}
	for r, status := range statusOf {
		if (status == 402) != may[r] {
			t.Errorf("%s is answered %d; a client signs a second payment on every 402", r, status)
		}
	}
}
