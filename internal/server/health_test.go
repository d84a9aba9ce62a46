package server

import (
	"testing"
	"time"

	"market/internal/catalog"
)

func TestBadgeOf_SaysForSaleOnlyOfWhatCanBeBought(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct {
		state  catalog.State
		rest   time.Duration
		broken bool
		dead   bool
	}{
		"for sale":                {state: catalog.Listed},
		"does not answer":         {state: catalog.Listed, dead: true},
		"resting after a failure": {state: catalog.Listed, rest: time.Second, dead: true},
		"broken listing":          {state: catalog.Listed, rest: time.Second, broken: true, dead: true},
		"delisted":                {state: catalog.Delisted, dead: true},
	} {
		if got := badgeOf(tt.state, tt.rest, tt.broken, tt.dead).Word; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
