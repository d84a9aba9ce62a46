package watch

import (
	"strings"
	"testing"
	"time"

	"market/internal/notify"
	"market/internal/payout"
)

func TestParkedFinding_SaysHowManyAndWhy(t *testing.T) {
	t.Parallel()
	f := parkedFinding(payout.Parked{Network: "eip155:8453", Count: 1, Oldest: time.Hour, Why: "the token refused it"})
	if f.key != (key{notify.PayoutsParked, "eip155:8453"}) || !f.bad {
		t.Errorf("found %+v", f.key)
	}
	for _, want := range []string{"1 payout on eip155:8453 is parked or does not get through", "the token refused it"} {
		if !strings.Contains(f.told.What, want) {
			t.Errorf("it says %q, want %q in it", f.told.What, want)
		}
	}
}
