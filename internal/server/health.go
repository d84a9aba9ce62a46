package server

import (
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

// seenAge is how long a page speaks of a probe that failed, unless its verdict counts for longer: while people want the service, it is probed
// again within a minute or so.
const seenAge = 2 * time.Minute

func (s *Server) badge(v *catalog.Service) badge {
	return badgeOf(v.State, s.rest(v.ID), v.Broken != "", s.dead(v))
}

// dead says that a service did not answer its probe when this process looked last, and that the fault was not ours.
func (s *Server) dead(v *catalog.Service) bool {
	if s.path == nil {
		return false
	}
	seen, ok := s.path.Prober.Seen(v)
	return ok && !seen.Live && seen.Reason != call.EgressDown && seen.Reason != call.LocalError && s.now().Sub(seen.At) < max(seenAge, s.path.Prober.TTL())
}
