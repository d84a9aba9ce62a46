package windowtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
)

const (
	// runsUsually is how many random runs are made beside all other tests; MARKET_WINDOW_RUNS asks for another number.
	runsUsually = 1
	// span is how long things happen in a random run.
	span = 10 * time.Second
	// rowsMax is how many replicas may count at once, those among them that were killed a moment ago: with more than nine the allowance would be under a
	// second, and nobody more would start.
	rowsMax = 6
)

// A run is one fleet with random events.
type run struct {
	n    int
	seed uint64
	most uint64 // units that were shown since the last proof of anybody
	did  map[string]int
}

func (r *run) name() string { return fmt.Sprintf("run %d", r.n) }

// randomRuns are the runs that are asked for. MARKET_WINDOW_SEED repeats their plans; what meets what is up to the machine.
func randomRuns(t *testing.T) []*run {
	t.Helper()
	seed := seedOf(t)
	t.Logf("MARKET_WINDOW_SEED=%d", seed)
	runs := make([]*run, numberFrom(t, "MARKET_WINDOW_RUNS", runsUsually))
	for i := range runs {
		runs[i] = &run{n: i + 1, seed: seed, did: map[string]int{}}
	}
	return runs
}

var randomSeed = rand.Uint64()

// seedOf draws a seed for a long run. Every run of the tests plays the same plans: it is there to notice what a change broke, and not to find out more.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	if os.Getenv("MARKET_WINDOW_RUNS") == "" {
		return numberFrom(t, "MARKET_WINDOW_SEED", 1)
	}
	return numberFrom(t, "MARKET_WINDOW_SEED", randomSeed)
}

func numberFrom(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// An event happens at a time of a run.
type event struct {
	at time.Duration
	do func()
}

// play has things happen to a fleet, and returns what did.
func (r *run) play(t *testing.T) string {
	dice := rand.New(rand.NewPCG(r.seed, uint64(r.n))) //nolint:gosec // a test's dice
	first := 1 + dice.IntN(3)
	f := newFleet(t, first)
	f.full(true)
	var joining joiners
	events := r.plan(t, f, dice, &joining)
	began := time.Now()
	for _, e := range events {
		await(t, time.Until(began.Add(e.at)))
		e.do()
	}
	joining.Wait()
	r.admitted(t, &joining)
	f.over(t)
	f.left(t)
	f.holds(t)
	seen := f.authority.sight()
	r.most = seen.most
	if len(seen.all) == 0 {
		t.Error("nothing was shown to the facilitator")
	}
	var did []string
	for _, what := range []string{"joined", "left", "killed", "hangs", "fails", "refuses", "hangs for some", "turned away at the start"} {
		if r.did[what] > 0 {
			did = append(did, fmt.Sprintf("%s %d", what, r.did[what]))
		}
	}
	return fmt.Sprintf("%d at first; %s; %d payments, at most %s USD since a proof", first, strings.Join(did, ", "), len(seen.all), usd(r.most))
}

// joiners are replicas that start while a run goes on.
type joiners struct {
	sync.WaitGroup
	mu     sync.Mutex
	errors []error // of those that did not start
}

func (j *joiners) refused(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.errors = append(j.errors, err)
}

// admitted wants every replica to have started, but for one that was told at its start that nobody settles: that is a lie in its configuration as far as it
// can know, and it says so and ends.
func (r *run) admitted(t *testing.T, joining *joiners) {
	t.Helper()
	for _, err := range joining.errors {
		if r.did["refuses"] > 0 && strings.Contains(err.Error(), "no facilitator settles on it") {
			r.did["turned away at the start"]++
			continue
		}
		t.Error(err)
	}
}

// plan draws what happens. Who it happens to is drawn when it does.
func (r *run) plan(t *testing.T, f *fleet, dice *rand.Rand, joining *joiners) []event {
	var (
		events []event
		killed []time.Time
	)
	at := func() time.Duration { return time.Duration(dice.Int64N(int64(span))) }
	add := func(at time.Duration, do func()) { events = append(events, event{at: at, do: do}) }
	counted := func() int {
		killed = slices.DeleteFunc(killed, func(when time.Time) bool { return time.Since(when) > 5*time.Second })
		return len(f.alive()) + len(killed)
	}
	starting := 0
	for range 1 + dice.IntN(3) {
		add(at(), func() {
			if counted()+starting >= rowsMax {
				return
			}
			starting++
			r.did["joined"]++
			joining.Go(func() {
				if _, err := f.launch(t); err != nil {
					joining.refused(err)
				}
			})
		})
	}
	for range dice.IntN(3) {
		who := dice.Uint64()
		add(at(), func() {
			if all := f.alive(); len(all) > 1 {
				r.did["left"]++
				killed = append(killed, time.Now())
				f.stop(all[who%uint64(len(all))])
			}
		})
	}
	for range dice.IntN(3) {
		who := dice.Uint64()
		add(at(), func() {
			if all := f.alive(); len(all) > 1 {
				r.did["killed"]++
				killed = append(killed, time.Now())
				f.kill(all[who%uint64(len(all))])
			}
		})
	}
	r.planOutages(f, dice, add)
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	return events
}

// planOutages draws what the facilitator does: one outage after another, with some time between them.
func (r *run) planOutages(f *fleet, dice *rand.Rand, add func(time.Duration, func())) {
	from := time.Duration(dice.Int64N(int64(2 * time.Second)))
	for from < span {
		length := time.Duration(dice.Int64N(int64(allowance(2) + time.Second)))
		what, who := dice.IntN(8), dice.Uint64()
		add(from, func() {
			switch what {
			case 0:
				r.did["refuses"]++
				f.authority.becomes(refuses)
			case 1, 2:
				r.did["fails"]++
				f.authority.becomes(fails)
			case 3:
				r.did["hangs for some"]++
				var deaf []string
				for i, m := range f.alive() {
					if who>>i&1 == 1 {
						deaf = append(deaf, m.name)
					}
				}
				f.authority.becomes(answers, deaf...)
			default:
				r.did["hangs"]++
				f.authority.becomes(hangs)
			}
		})
		add(from+length, func() { f.authority.becomes(answers) })
		from += length + time.Second + time.Duration(dice.Int64N(int64(2*time.Second)))
	}
}

// left waits until all that were told to stop have, well.
func (f *fleet) left(t *testing.T) {
	t.Helper()
	for _, m := range f.everybody() {
		if !m.told {
			continue
		}
		apptest.Eventually(t, "replica "+m.name+" ends", func() bool {
			select {
			case <-m.Ended:
				return true
			default:
				return false
			}
		})
		if code := m.State().ExitCode(); code != 0 {
			t.Errorf("replica %s was told to stop, and ended with %d:\n%s", m.name, code, m.Said())
		}
	}
}

// await lets real time pass: this is about how much of it does.
func await(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
