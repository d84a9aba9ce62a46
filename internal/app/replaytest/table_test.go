package replaytest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"market/internal/app/apptest"
)

// An incident is one thing that went wrong, and how it ends here.
type incident struct {
	title, name string
	then, now   string                    // what came of it then, and what has to come of it now
	play        func(t *testing.T) string // returns the figures that it saw
}

func incidents() []incident {
	return slices.Concat(counterIncidents(), creditIncidents(), probeIncidents(), growthIncidents(), allIncidents())
}

// size asks for the whole of what a run of all tests makes less of: make replay does.
func size(t *testing.T, otherwise, whole int) int {
	t.Helper()
	text, set := os.LookupEnv("MARKET_REPLAY_WHOLE")
	if !set || text == "" {
		return otherwise
	}
	if all, err := strconv.ParseBool(text); err != nil {
		t.Fatalf("MARKET_REPLAY_WHOLE=%q: %v", text, err)
	} else if all {
		return whole
	}
	return otherwise
}

// Every incident ends otherwise than it did.
func TestIncidents(t *testing.T) {
	t.Parallel()
	all := incidents()
	tally, saw := apptest.NewTally(len(all)), make([]string, len(all))
	var wg sync.WaitGroup
	for n, i := range all {
		wg.Go(func() {
			t.Run(i.name, func(one *testing.T) {
				defer func() { tally.Ended(n, !one.Failed()) }()
				saw[n] = i.play(one)
			})
		})
	}
	wg.Wait()
	sheet := apptest.Sheet{Of: "replay", First: "incident", Columns: []string{"what was seen"}}
	for n, i := range all {
		sheet.Lines = append(sheet.Lines, apptest.Line{Title: i.title, Name: i.name, Cells: []string{saw[n]}})
	}
	fmt.Print(sheet.Text(tally), "\n", tally.Line(t.Failed()))
}
