package delivery

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/outage"
	"market/internal/postgres/pgtest"
)

// deaf is a street of which one replica cannot look up any name, and has not looked yet whether that is an outage. The others reach every service.
func deaf(t *testing.T) (s street, replica uuid.UUID) {
	t.Helper()
	s, replica = newStreet(t, 6, 6), uuid.Must(uuid.NewV7())
	for _, shop := range s.shops[:5] {
		s.record(t, shop.trial(t).walkedBy(s.owner).served())
		s.record(t, shop.trial(t).walkedBy(replica).end(call.EgressDown, ""))
	}
	pgtest.Shift(t, s.db, time.Second)
	return s, replica
}

func TestGuard_AReplicaThatIsDownIsNoOutageOfTheFleetWhoeverLooksFirst(t *testing.T) {
	t.Parallel()
	for name, itselfFirst := range map[string]bool{"the replica itself looks first": true, "another one looks first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, replica := deaf(t)
			s.failsOf(t, s.shops[5]) // is really broken: a replica met that which reaches all others
			guards := []*Guard{s.guard, s.guardOf(replica)}
			if itselfFirst {
				guards[0], guards[1] = guards[1], guards[0]
			}
			for _, g := range guards {
				if _, err := g.Tick(t.Context(), none); err != nil {
					t.Fatal(err)
				}
			}
			wantOneOf(t, s, replica)
			s.wantBlame(t, "what the healthy replica met", blame{Strikes: 1, Cooldowns: 1, Services: 1})
		})
	}
}

func TestRecorder_AFailureThatAHealthyReplicaMeetsBeginsNoOutageOfTheFleetForOneThatIsDown(t *testing.T) {
	t.Parallel()
	s, _ := deaf(t)
	s.failsOf(t, s.shops[5]) // nobody has looked yet
	if all := s.outages(t); len(all) != 0 {
		t.Errorf("outages %+v, want none: the replica that is down knows only its own", all)
	}
	s.wantBlame(t, "what the healthy replica met", blame{Strikes: 1, Cooldowns: 1, Services: 1})
}

func wantOneOf(t *testing.T, s street, replica uuid.UUID) {
	t.Helper()
	if all := s.outages(t); len(all) != 1 || all[0].Replica != replica || all[0].Cause != outage.Services {
		t.Errorf("outages %+v, want one of the replica that is down", all)
	}
}
