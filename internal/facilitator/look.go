package facilitator

import (
	"context"
	"errors"
	"slices"
	"time"

	"market/internal/readiness"
)

// said is what came of asking one link.
type said struct {
	link     link
	validFor time.Duration
	err      error
	limit    error // from memory: it takes no work now
}

// Look asks all facilitators at once whether they would settle now; nil where one can. It asks all of them, because the order of the next settlements rests on
// what each said last. It returns for how long they let their answer be used; zero where one that can settle says nothing of that.
//
// The error is a *readiness.Denied where nobody is left on whom what was proved before can rest. Any other error says nothing, so what was proved before may
// be used as long as it is young enough. Where all of them are out it says what holds once they are not: Limited knows that to the second, and what Look said
// is kept for longer.
func (f *Failover) Look(ctx context.Context) (validFor time.Duration, err error) {
	began, all := f.now(), make([]said, len(f.links))
	asking, enough := context.WithCancelCause(ctx)
	defer enough(errEnough)
	type answer struct {
		of int
		said
	}
	answers := make(chan answer, len(f.links))
	for i, l := range f.links {
		all[i] = said{link: l, limit: l.limited(), err: errEnough}
		go func() {
			one := answer{i, said{link: l, limit: all[i].limit}}
			one.validFor, one.err = l.look(asking)
			answers <- one
		}()
	}
	var grace <-chan time.Time
	for range f.links {
		select {
		case one := <-answers:
			all[one.of] = one.said
			if one.err == nil && one.limit == nil && grace == nil {
				grace = time.After(lookGrace)
			}
			continue
		case <-grace:
		}
		break
	}
	return f.conclude(began, all, f.Limited() != nil)
}

// lookGrace is how long those have to answer that are slower than one that has proved that it settles.
const lookGrace = 250 * time.Millisecond

// errEnough is said of who had not answered when another one had proved enough.
var errEnough = errors.New("another facilitator answered long before this one")

// conclude makes one word of what all of them said; out is that none of them takes work, which is kept elsewhere.
func (f *Failover) conclude(began time.Time, all []said, out bool) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var (
		whys     []error
		can      []time.Duration // how long the word of each holds that can settle
		unclear  bool            // one has said nothing
		standing bool            // one of these is whom what was proved last rests on
	)
	last := latest(f.proved)
	for _, s := range all {
		denied, no := errors.AsType[*readiness.Denied](s.err)
		switch {
		case s.err == nil && (s.limit == nil || out):
			can = append(can, s.validFor)
		case no, s.err == nil:
			delete(f.proved, s.link)
		default:
			unclear = true
			at, proved := f.proved[s.link]
			standing = standing || proved && at.Equal(last)
		}
		if no {
			s.err = denied.Why // whether it is a no of all of them is said below
		}
		whys = append(whys, s.err, untyped(s.limit))
	}
	if len(can) > 0 {
		for _, s := range all {
			if s.err == nil && s.limit == nil {
				f.proved[s.link] = began
			}
		}
		return longest(can), nil
	}
	err := errors.Join(whys...)
	if unclear && (standing || last.IsZero()) {
		return 0, err
	}
	return 0, &readiness.Denied{Why: err}
}

// settled says that a link has settled what was given to it at a time.
func (f *Failover) settled(by link, began time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if began.After(f.proved[by]) {
		f.proved[by] = began
	}
}

func latest(proved map[link]time.Time) time.Time {
	var last time.Time
	for _, at := range proved {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// longest is the longest of times of which zero is none.
func longest(all []time.Duration) time.Duration {
	if slices.Contains(all, 0) {
		return 0
	}
	return slices.Max(all)
}
