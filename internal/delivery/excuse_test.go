package delivery

import (
	"testing"

	"market/internal/call"
)

func TestRecorder_AnOutageLeavesWhatTheOperatorAndTheProviderMeetAsItIs(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 1, 1)
	s.tick(t, silent)
	for _, from := range []call.Origin{call.Own, call.Provider} {
		d := s.shops[0].trial(t).walkedBy(s.owner).failed()
		d.Origin = from
		s.record(t, d)
		s.wantParty(t, "a call from "+string(from)+" while it holds", d.Call, call.Service)
	}
	s.wantBlame(t, "while it holds", blame{Services: 2})
}
