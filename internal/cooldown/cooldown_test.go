package cooldown_test

import (
	"testing"
	"time"

	"market/internal/call"
	"market/internal/cooldown"
)

func TestAfter_AThrottlingServiceSaysForHowLong(t *testing.T) {
	t.Parallel()
	const base = time.Minute
	for name, tt := range map[string]struct {
		asked, want time.Duration
	}{
		"it says nothing":         {0, base},
		"less than a cooldown":    {base - time.Second, base},
		"as long as a cooldown":   {base, base},
		"longer than a cooldown":  {base + time.Second, base + time.Second},
		"just below the limit":    {cooldown.ThrottleMax - time.Second, cooldown.ThrottleMax - time.Second},
		"the limit":               {cooldown.ThrottleMax, cooldown.ThrottleMax},
		"longer than we will bow": {cooldown.ThrottleMax + time.Second, cooldown.ThrottleMax},
	} {
		if got := cooldown.After(call.Failed, call.Service, call.UpstreamThrottled, call.External, tt.asked, base); got != tt.want {
			t.Errorf("%s: rests %s after Retry-After %s, want %s", name, got, tt.asked, tt.want)
		}
	}
	if got := cooldown.After(call.Failed, call.Service, call.Upstream5xx, call.External, 5*time.Minute, base); got != base {
		t.Errorf("a failure that is no throttling rests %s, want %s whatever it asks for", got, base)
	}
}
