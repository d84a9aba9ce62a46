package windowtest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"market/internal/app/apptest"
)

// A row is one thing that can happen to a fleet whose facilitator falls silent. play returns what was seen.
type row struct {
	name, want string
	play       func(t *testing.T, f *fleet) string
}

// A group is rows that one fleet goes through, one after another: what comes after an outage is a part of it.
type group struct {
	title    string
	replicas int
	env      []string
	rows     []row
}

// groups are all rows. b is 200 USD, every replica admits r = 20 USD a second and c = 4 USD at once.
func groups() []group {
	return []group{
		{"Two replicas", 2, nil, []row{
			{"the facilitator hangs", "each withdraws 4.8 s after its last proof: (200 − 2·4) / (2·20)", hang(2, allowance(2))},
			{"it fails for less than the allowance", "nobody withdraws, and payments are taken meanwhile", blink},
			{"it says that it settles nothing", "each withdraws at once, and stays so when it hangs after that", refuse},
			{"a third one joins during an outage", "it admits nothing before the facilitator has answered it", joinDuringOutage},
			{"one of three is killed as the outage begins", "its rate counts on: the others stop no later than 3.13 s after their last proof; later the allowance is that of two", crash},
		}},
		{"Eight replicas, nothing configured anew", 8, nil, []row{
			{"the facilitator hangs", "each withdraws 1.05 s after its last proof: (200 − 8·4) / (8·20)", hang(8, allowance(8))},
		}},
		{"Two replicas with a quarter of the budget each", 2, []string{"MARKET_EXPOSURE_SHARE=0.25"}, []row{
			{"the facilitator hangs", "each withdraws 2.3 s after its last proof: (50 − 4) / 20", hang(2, (budget/4-burst)*time.Second/rate)},
			{"a request for readiness, or for a price, while it hangs", "is answered from memory: it waits for no answer of the facilitator and asks it nothing", doors},
		}},
	}
}

// TestWindow plays every row and the random runs, and prints what was seen.
func TestWindow(t *testing.T) {
	t.Parallel()
	var (
		all   = groups()
		runs  = randomRuns(t)
		lines []apptest.Line
	)
	for _, g := range all {
		for _, r := range g.rows {
			lines = append(lines, apptest.Line{Title: g.title, Name: r.name, Cells: []string{r.want, ""}})
		}
	}
	fixed := len(lines)
	for _, r := range runs {
		lines = append(lines, apptest.Line{Title: "Random joins, leaves, kills and outages", Name: r.name(),
			Cells: []string{fmt.Sprintf("never more than %d USD since the last proof of anybody", budget), ""}})
	}
	var (
		tally = apptest.NewTally(len(lines))
		wg    sync.WaitGroup
		turns = semaphore.NewWeighted(atOnce(len(runs)))
		n     = 0
	)
	for _, g := range all {
		first := n
		n += len(g.rows)
		wg.Go(func() {
			defer take(t, turns, g.turns())()
			t.Run(g.title, func(t *testing.T) {
				g.play(t, lines[first:first+len(g.rows)], func(i int, well bool) { tally.Ended(first+i, well) })
			})
		})
	}
	for i, r := range runs {
		wg.Go(func() {
			defer take(t, turns, 1)()
			t.Run(r.name(), func(one *testing.T) {
				defer func() { tally.Ended(fixed+i, !one.Failed()) }()
				lines[fixed+i].Cells[1] = r.play(one)
			})
		})
	}
	wg.Wait()
	report(t, lines, tally, runs)
}

// take waits for so many turns, and returns what gives them back.
func take(t *testing.T, turns *semaphore.Weighted, n int64) func() {
	if err := turns.Acquire(t.Context(), n); err != nil {
		t.Error(err)
		return func() {}
	}
	return func() { turns.Release(n) }
}

// turns is how many a group takes: a large fleet is as much as two others, and has the machine for itself where it is measured.
func (g group) turns() int64 {
	if g.replicas > large {
		return 2
	}
	return 1
}

// large is the most replicas of a fleet that is one like others.
const large = 4

// atOnce is how many fleets run beside each other. Most of the time they wait; a long run measures, and has more of the machine for each of them.
func atOnce(runs int) int64 {
	if runs > runsUsually {
		return 2
	}
	return 4
}

// play takes a fleet through the rows of a group.
func (g group) play(t *testing.T, lines []apptest.Line, ended func(i int, well bool)) {
	defer func() {
		if t.Failed() { // also where no row has begun
			for i := range g.rows {
				if lines[i].Cells[1] == "" {
					ended(i, false)
				}
			}
		}
	}()
	f := newFleet(t, g.replicas, g.env...)
	for i, r := range g.rows {
		t.Run(r.name, func(one *testing.T) {
			defer func() { ended(i, !one.Failed()) }()
			lines[i].Cells[1] = r.play(one, f)
			f.holds(one)
			f.over(one)
		})
		if t.Failed() {
			return // the rows after it begin where it ends well
		}
	}
}

// over lets the facilitator answer again, and waits until everybody is ready.
func (f *fleet) over(t testing.TB) {
	t.Helper()
	f.full(false)
	f.authority.becomes(answers)
	f.allReady(t)
}

// report prints the table, and writes it to the file that MARKET_WINDOW_RESULT names.
func report(t *testing.T, lines []apptest.Line, tally *apptest.Tally, runs []*run) {
	t.Helper()
	sheet := apptest.Sheet{Of: "window", First: "what happens", Columns: []string{"what has to come of it", "what was seen"}, Lines: lines}
	most := uint64(0)
	for _, r := range runs {
		most = max(most, r.most)
	}
	exposure := fmt.Sprintf("The most that was shown to the facilitator since the last proof of anybody, in %d random runs: %s of %d USD.\n", len(runs), usd(most), budget)
	printed := sheet
	printed.Columns, printed.Lines = sheet.Columns[1:], nil
	for i, l := range lines {
		cell := l.Cells[1]
		if tally.At(i) == apptest.Otherwise {
			cell = l.Cells[0] + "; saw: " + cell
		}
		printed.Lines = append(printed.Lines, apptest.Line{Title: l.Title, Name: l.Name, Cells: []string{cell}})
	}
	fmt.Print(printed.Text(tally), "\n", exposure, tally.Line(t.Failed()))
	file := os.Getenv("MARKET_WINDOW_RESULT")
	if file == "" {
		return
	}
	verdict := "every check passed"
	if t.Failed() {
		verdict = "FAILED"
	}
	page := fmt.Sprintf(heading, os.Getenv("MARKET_WINDOW_COMMIT"), seedOf(t), verdict) + "\n" + exposure + sheet.Markdown()
	if err := os.WriteFile(file, []byte(strings.TrimLeft(page, "\n")), 0o644); err != nil { //nolint:gosec // for everybody to read
		t.Error(err)
	}
}

const heading = `
# The stale window, measured

` + "`make window`" + ` writes this file. Every row is played by real processes with one database and a facilitator of somebody else that answers, hangs, fails or
refuses. An operator may lose b = 200 USD; every replica sends r = 20 USD a second to settlement and c = 4 USD at once, and nobody tells it how many of
them there are. A proof counts from when the question of it came to the facilitator.

| | |
|---|---|
| commit | %s |
| seed | %d |
| verdict | %s |
`
