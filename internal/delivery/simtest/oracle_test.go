package simtest

import "time"

// An oracle says which services have to leave the shelf, and at which call. It knows the truth, and the rule as the documentation words it:
//
// A failure of the service's own doing, seen from outside, is an incident; those asked before a minute has passed since the incident began are the
// same one. A success asked after the last failure of an incident ends it. The third incident within 24 hours delists. While our own outage is known, nothing
// is an incident, and one that consists of nothing but what an outage excuses is taken back.
//
// It keeps the facts of a day, and counts anew from all of them each time.
type oracle struct {
	trips    func() []*trip // outages as they were seen: that they were right, and excuse no more than they may, is judged apart (judgeTrips)
	trusted  int            // how many of them are known already
	facts    [][]fact       // of each service, in the order of recording
	takenAt  map[taken]time.Duration
	expected []int // of each service: the call that delists it; 0: it stays
}

// A fact is one call that says something.
type fact struct {
	end
	success bool
}

// taken names an incident by its service and its first call.
type taken struct{ service, call int }

// An incident is a group of failures.
type incident struct {
	failures []fact
	over     bool
	taken    bool          // back, for an outage of ours
	until    time.Duration // when it is another incident
}

func newOracle(services int, trips func() []*trip) *oracle {
	return &oracle{trips: trips, facts: make([][]fact, services), expected: make([]int, services), takenAt: map[taken]time.Duration{}}
}

const (
	oneIncident = time.Minute
	aDay        = 24 * time.Hour
	third       = 3
)

// see takes the next recorded call in.
func (o *oracle) see(e end) {
	if !e.caller.outside() || !e.wasAsked() {
		return
	}
	f := fact{end: e, success: e.truth == delivered}
	if !f.success && e.truth != ownFault && !looksOwn(e) || !f.success && o.excused(e) {
		return
	}
	kept := o.facts[e.service]
	if len(kept) > 0 && kept[0].at < e.at-2*aDay {
		old := 0
		for kept[old].at < e.at-aDay-time.Hour {
			old++
		}
		kept = append(kept[:0], kept[old:]...)
	}
	o.facts[e.service] = append(kept, f)
	if !f.success && o.expected[e.service] == 0 {
		o.expected[e.service] = o.delists(e.service, e.n)
	}
}

// delists returns the first call, from one on, that is the third incident of its service within a day; 0: none is.
func (o *oracle) delists(service, from int) (decided int) {
	o.walk(service, func(began *incident, all []*incident) bool {
		if f := began.failures[0]; f.n >= from && standing(all, f.at) >= third {
			decided = f.n
		}
		return decided == 0
	})
	return decided
}

// count returns how many incidents of a service stand.
func (o *oracle) count(service int, now time.Duration) int {
	if len(o.facts[service]) == 0 {
		return 0
	}
	return standing(o.walk(service, func(*incident, []*incident) bool { return true }), now)
}

// walk goes through the incidents of a service in the order of their beginnings, each with all so far, as long as it is told to.
func (o *oracle) walk(service int, on func(began *incident, all []*incident) bool) (all []*incident) {
	for _, f := range o.facts[service] {
		switch last := len(all) - 1; {
		case f.success:
			for _, i := range all {
				i.over = i.over || i.failures[len(i.failures)-1].at < f.asked
			}
		case last >= 0 && f.asked < all[last].until:
			all[last].failures = append(all[last].failures, f)
		default:
			began := &incident{failures: []fact{f}, until: f.at + oneIncident}
			at, back := o.takenAt[taken{service, f.n}]
			if began.taken = back; back {
				began.until = min(began.until, at)
			}
			if all = append(all, began); !on(began, all) {
				return all
			}
		}
	}
	return all
}

// standing counts incidents of the day before.
func standing(all []*incident, now time.Duration) (n int) {
	for _, i := range all {
		if !i.over && !i.taken && i.failures[0].at > now-aDay {
			n++
		}
	}
	return n
}

// excused says whether an outage that was seen by now covers a failure.
func (o *oracle) excused(e end) bool {
	trips := o.trips()
	for i := len(trips) - 1; i >= 0; i-- {
		t := trips[i]
		if !t.state.Ended.IsZero() && e.at-t.state.Ended.Sub(beginning) > time.Hour {
			break // no call takes so long
		}
		if (t.replica == fleet || t.replica == e.replica) && !moment(e.at).Before(t.state.Reaches) &&
			(t.state.Ended.IsZero() || !moment(e.asked).After(t.state.Ended)) {
			return true
		}
	}
	return false
}

// reconsider takes incidents back that an outage explains which is known since a moment ago.
func (o *oracle) reconsider(now time.Duration) {
	trips := o.trips()
	if len(trips) == o.trusted {
		return
	}
	reaches := moment(now)
	for _, t := range trips[o.trusted:] {
		if t.state.Reaches.Before(reaches) {
			reaches = t.state.Reaches
		}
	}
	o.trusted = len(trips)
	for service, facts := range o.facts {
		if n := len(facts); n == 0 || moment(facts[n-1].at).Before(reaches) {
			continue
		}
		changed := false
		for _, i := range o.walk(service, func(*incident, []*incident) bool { return true }) {
			// One that a success has ended counts where it was a part of three before.
			if i.over && o.expected[service] == 0 || i.taken || moment(i.failures[0].at).Before(reaches) || !o.allExcused(i) {
				continue
			}
			o.takenAt[taken{service, i.failures[0].n}] = now
			changed = true
		}
		if decided := o.expected[service]; changed && decided > 0 {
			o.expected[service] = o.delists(service, decided)
		}
	}
}

func (o *oracle) allExcused(i *incident) bool {
	for _, f := range i.failures {
		if !o.excused(f.end) {
			return false
		}
	}
	return true
}
