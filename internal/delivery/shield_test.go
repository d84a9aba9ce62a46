package delivery

import (
	"testing"
	"time"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
)

// A provider who has a few listings that nobody needs, under three names, lets them fail at once whenever that could make an outage of ours known, and
// is excused with them only for a while.
func TestGuard_WhoLetsOtherServicesFailToBeExcusedWithThemIsDelistedAllTheSame(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 6, 3)
	sells, shield := s.shops[0], s.shops[1:]
	const most = 5 // minutes
	for minute := range most {
		s.tick(t, none)
		if len(s.guard.Open()) == 0 {
			s.failsOf(t, shield...)
		}
		s.failsOf(t, sells)
		if minute == 0 {
			s.wantBlame(t, "at first", blame{Strikes: 4, Cooldowns: 4, Services: 4, Excused: 2})
		}
		pgtest.Shift(t, s.db, time.Minute)
	}
	var state catalog.State
	if err := s.db.QueryRow(t.Context(), `SELECT state FROM services WHERE id = $1`, sells.service.ID).Scan(&state); err != nil || state != catalog.Delisted {
		t.Errorf("what fails each minute is %s after %d minutes, %v; want it delisted", state, most, err)
	}
	if all := s.outages(t); len(all) != 1 {
		t.Errorf("outages %+v, want the first alone", all)
	}
}
