package source

import "time"

// A state is how a source stands, whatever the day. Times are market time; zero: never, or not now.
type state struct {
	exhaustedAt    time.Time // they stop us: when a request last met or tested that
	retryAt        time.Time // the end of the window
	why            Why       // of the last outage, until it is over: Exhausted or Denied
	said           string
	nextRequestAt  time.Time // they asked us to wait until then
	outSince       time.Time // the outage, until it is over
	refusedAt      time.Time
	clearedAt      time.Time // when the request was reserved whose success ended the last stop
	lastSuccessAt  time.Time
	guardReachedAt time.Time
	guardCap       int64
}

// A change is what an answer made different.
type change struct {
	written   bool // something has to be written
	out       bool // it is newly out
	refused   bool
	cleared   bool // it can be asked again
	recovered bool // the outage is over, and was of this reason
	was       Why
}

// learn is what a source's answer to a request says, that was reserved at one time and answered at another.
func (s state) learn(of Source, v Verdict, reserved, at time.Time) (state, change) {
	switch v.Kind {
	case Worked:
		return s.worked(reserved, at)
	case Refused, Rejected:
		return s.refuse(of, v, reserved, at)
	case Slowed:
		return s.slow(v, reserved, at)
	case Troubled:
	}
	return s, change{}
}

// refuse begins a stop, or begins its window anew where the request was its test. Requests that were under way together are refused together: the first
// one says it all. What is older than the last thing that is known says nothing.
func (s state) refuse(of Source, v Verdict, reserved, at time.Time) (state, change) {
	if s.stops() && reserved.Before(s.exhaustedAt) || reserved.Before(s.clearedAt) {
		return s, change{}
	}
	c := change{written: true, refused: true, out: s.outSince.IsZero()}
	s.exhaustedAt, s.retryAt, s.refusedAt, s.said = at, retryAt(of, v, at), at, v.Said
	s.why = Exhausted
	if v.Kind == Rejected {
		s.why = Denied
	}
	if c.out {
		s.outSince = at
	}
	return s, c
}

// worked ends a stop if the request was reserved since it was last known: that of the window is. The outage is over by the first success after a time
// without a refusal.
func (s state) worked(reserved, at time.Time) (state, change) {
	c := change{written: true}
	s.lastSuccessAt = at
	if s.stops() {
		if reserved.Before(s.exhaustedAt) {
			return s, c
		}
		s.exhaustedAt, s.retryAt, s.clearedAt = time.Time{}, time.Time{}, reserved
		c.cleared = true
	}
	if !s.outSince.IsZero() && !reserved.Before(s.refusedAt) && at.Sub(s.refusedAt) >= calm {
		c.recovered, c.was = true, s.why
		s.outSince, s.why = time.Time{}, 0
	}
	return s, c
}

// slow waits for a moment. Where it was a test, the next one comes after that moment: it was not said that nothing is left.
func (s state) slow(v Verdict, reserved, at time.Time) (state, change) {
	next := at.Add(max(paceMin, v.Wait))
	tested := s.stops() && !reserved.Before(s.exhaustedAt) && next.Before(s.retryAt)
	if tested {
		s.retryAt = next
	}
	// Many are told at once, each a little later: they need not all write it.
	later := next.Sub(s.nextRequestAt) >= paceMin
	if later {
		s.nextRequestAt = next
	}
	return s, change{written: tested || later}
}

// stops says that they stop us.
func (s state) stops() bool { return !s.exhaustedAt.IsZero() }

// recovering says that a success would be the end of the outage.
func (s state) recovering(at time.Time) bool {
	return !s.stops() && !s.outSince.IsZero() && at.Sub(s.refusedAt) >= calm
}

// waits is how long they do not want to be asked; zero: they may be.
func (s state) waits(at time.Time) (why Why, until time.Time) {
	if s.stops() && at.Before(s.retryAt) {
		why, until = s.why, s.retryAt
	}
	if at.Before(s.nextRequestAt) && s.nextRequestAt.After(until) {
		why, until = Paced, s.nextRequestAt
	}
	return why, until
}

// guards says that we have stopped today at a cap that is not higher now.
func (s state) guards(day time.Time, limit int64) bool {
	return !s.guardReachedAt.IsZero() && !dayOf(s.guardReachedAt).Before(day) && s.guardCap >= limit
}
