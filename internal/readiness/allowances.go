package readiness

import "time"

// allowancesMax is how many changes are remembered.
const allowancesMax = 64

// allowances remember which allowances have held since when. A proof may be used for the smallest that has held since it began: a process that leaves enlarges
// only what is proved afterwards, because it may have sent until it left.
type allowances struct {
	// steps have the smallest since their time, so they grow: an allowance that is smaller than those before it takes their place.
	steps []allowanceStep
}

type allowanceStep struct {
	from  time.Time
	least time.Duration
}

// now takes in what holds from a time on.
func (a *allowances) now(at time.Time, allowance time.Duration) {
	from := at
	for len(a.steps) > 0 {
		last := a.steps[len(a.steps)-1]
		if last.least < allowance {
			break
		}
		from = last.from
		a.steps = a.steps[:len(a.steps)-1]
	}
	a.steps = append(a.steps, allowanceStep{from, allowance})
	if len(a.steps) > allowancesMax { // the oldest two become one, by the smaller
		a.steps[1].from, a.steps[1].least = a.steps[0].from, a.steps[0].least
		a.steps = append(a.steps[:0], a.steps[1:]...)
	}
}

// since is what a proof may be used for that began at a time: zero where nothing is known of that time.
func (a *allowances) since(began time.Time) (least time.Duration) {
	for _, s := range a.steps {
		if s.from.After(began) {
			break
		}
		least = s.least
	}
	return least
}

// last is what holds now.
func (a *allowances) last() time.Duration {
	if len(a.steps) == 0 {
		return 0
	}
	return a.steps[len(a.steps)-1].least
}
