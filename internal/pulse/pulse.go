// Package pulse knows which loops of a process still come round. A loop that hangs, or that panics in every round, does nothing and says nothing; here
// somebody who looks can see it.
//
// Times are those of the process, and never leave it: what is told is a duration.
package pulse

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// missedMax is how many rounds a loop may miss, and silentMin how long it may be silent in any case: a round has a bound of its own, which is longer
	// than the pause between two of them.
	missedMax = 5
	silentMin = 2 * time.Minute
	// firstPause is what counts as the pause of a loop that has not told it yet: none of ours pauses longer.
	firstPause = time.Minute
	// restMax is how long a loop rests after a panic, so that one which always panics does not fill the log.
	restMax = 10 * time.Second
)

// Loops are the loops of one process.
type Loops struct {
	// Panicked hears of a round that panicked. The loop begins again; what it was doing is left to whoever finds it, as after a crash.
	Panicked func(loop string, cause any, stack []byte)
	now      func() time.Time

	mu    sync.Mutex
	loops map[string]*loop
}

// A loop is one of them.
type loop struct {
	name  string
	of    *Loops
	last  time.Time     // when it came round, or began
	pause time.Duration // from one round to the next
	fell  bool          // it panicked, and has not come round since
}

// New returns the loops of a process, of which there is none yet.
func New(now func() time.Time, panicked func(loop string, cause any, stack []byte)) *Loops {
	return &Loops{Panicked: panicked, now: now, loops: map[string]*loop{}}
}

type key struct{}

// Go runs a loop beside its caller until it returns. It is watched from now on. One that panics is begun again after a rest: a round that went wrong must
// neither end the program, with every call that is under way, nor the loop, without a word.
func (l *Loops) Go(ctx context.Context, running *sync.WaitGroup, name string, run func(context.Context)) {
	one := &loop{name: name, of: l, last: l.now(), pause: firstPause}
	l.mu.Lock()
	if l.loops[name] != nil {
		l.mu.Unlock()
		panic("pulse: two loops are called " + name)
	}
	l.loops[name] = one
	l.mu.Unlock()
	running.Go(func() {
		one.run(context.WithValue(ctx, key{}, one), run)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.loops, name)
	})
}

// run runs the loop until it ends by itself, or ctx does.
func (o *loop) run(ctx context.Context, run func(context.Context)) {
	for !o.whole(ctx, run) {
		rest := time.NewTimer(restMax)
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// whole runs the loop, and says whether it ended by itself.
func (o *loop) whole(ctx context.Context, run func(context.Context)) (ended bool) {
	defer func() {
		if cause := recover(); cause != nil {
			o.of.mu.Lock()
			o.fell = true
			o.of.mu.Unlock()
			o.of.Panicked(o.name, cause, debug.Stack())
		}
	}()
	run(ctx)
	return true
}

// Beat says that the loop which runs under ctx has come round, whatever came of it, and how long it pauses until the next round. It does nothing for a
// loop that nobody watches.
func Beat(ctx context.Context, pause time.Duration) {
	one, watched := ctx.Value(key{}).(*loop)
	if !watched {
		return
	}
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	one.last, one.pause, one.fell = one.of.now(), pause, false
}

// A Silence is a loop that should have come round and did not.
type Silence struct {
	Loop     string
	For      time.Duration // since it came round
	Panicked bool          // its last round ended in a panic
}

// Patience is how long a loop may be silent that pauses so long between two rounds.
func Patience(pause time.Duration) time.Duration { return max(silentMin, missedMax*pause) }

// Silent returns the loops that have been silent for too long, by their names.
func (l *Loops) Silent() []Silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	var silent []Silence
	now := l.now()
	for _, one := range l.loops {
		if since := now.Sub(one.last); since > Patience(one.pause) {
			silent = append(silent, Silence{Loop: one.name, For: since, Panicked: one.fell})
		}
	}
	slices.SortFunc(silent, func(a, b Silence) int { return strings.Compare(a.Loop, b.Loop) })
	return silent
}

// Names returns the loops that run.
func (l *Loops) Names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for name := range l.loops {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
