package watch

import (
	"cmp"
	"slices"
	"time"

	"market/internal/notify"
)

// A key is what a notice is about: there is one open notice of each.
type key struct {
	kind    notify.Kind
	subject string
}

// A finding is how one condition looks to this process at the moment.
type finding struct {
	key
	bad  bool
	told notify.Outage
}

// A Sighting is a trouble that a process sees, or has seen a moment ago.
type Sighting struct {
	Kind    notify.Kind   `json:"kind"`
	Subject string        `json:"subject"`
	Bad     bool          `json:"bad"` // also when it was looked at last
	For     time.Duration `json:"for"` // since it began
	Told    notify.Outage `json:"told"`
}

// A spell is how long a trouble has lasted in the eyes of one process. It goes on until the trouble has been away for a while: what comes and goes is
// one trouble.
type spell struct {
	since time.Time
	last  time.Time // it was bad
	bad   bool
	told  notify.Outage
}

// sightings are the spells that this process has seen.
type sightings struct {
	quiet  time.Duration // a trouble has to be away for so long
	spells map[key]spell
}

// take keeps what was found now, and returns what is seen of troubles: those that hold, and those that have not been away for long enough. What was not
// found is away.
func (s *sightings) take(now time.Time, found []finding) []Sighting {
	bad := map[key]notify.Outage{}
	for _, f := range found {
		if f.bad {
			bad[f.key] = f.told
		}
	}
	for k, one := range s.spells {
		if _, still := bad[k]; !still {
			one.bad = false
			s.spells[k] = one
		}
		if !one.bad && now.Sub(one.last) >= s.quiet {
			delete(s.spells, k)
		}
	}
	for k, told := range bad {
		one, known := s.spells[k]
		if !known {
			one.since = now
		}
		one.last, one.bad, one.told = now, true, told
		s.spells[k] = one
	}
	var seen []Sighting
	for k, one := range s.spells {
		seen = append(seen, Sighting{Kind: k.kind, Subject: k.subject, Bad: one.bad, For: now.Sub(one.since), Told: one.told})
	}
	slices.SortFunc(seen, func(a, b Sighting) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject)) })
	return seen
}
