package source

import "time"

const (
	// deniedWindow is how long a source is not asked that does not accept our credential. Somebody has to change it, and the start with the new one is
	// no reason to wait for long.
	deniedWindow = 5 * time.Minute
	// outageMin is the Retry-After from which on a source is out; below it, it asks for a moment.
	outageMin = 60 * time.Second
	// askedMax is the longest Retry-After that is honoured: a source that says a year by mistake is asked tomorrow.
	askedMax = 24 * time.Hour
	// paceMin is the least that is waited where a source asks for a moment and does not say how long that is, or says none.
	paceMin = time.Second
	// calm is for how long a source must not have refused before it counts as recovered, so that one that comes and goes is one outage.
	calm = 5 * time.Minute
)

// retryAt is when a source may be tested that has just refused.
func retryAt(s Source, v Verdict, at time.Time) time.Time {
	switch {
	case v.Kind == Rejected:
		return at.Add(deniedWindow)
	case v.Wait >= outageMin:
		return at.Add(min(v.Wait, askedMax))
	case s.RunsOut == Daily:
		return nextDay(at)
	}
	return at.Add(s.RetryWindow)
}

// nextDay is the midnight after an instant, of UTC.
func nextDay(at time.Time) time.Time { return dayOf(at).AddDate(0, 0, 1) }

// dayOf is the midnight before an instant, or on it, of UTC.
func dayOf(at time.Time) time.Time {
	y, m, d := at.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}
