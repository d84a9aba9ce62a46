package simtest

import (
	"fmt"
	"strings"
	"time"

	"market/internal/catalog"
	"market/internal/strikes"
)

// A tally is what became of calls.
type tally struct {
	of      [2][doingEnd]became // from outside, and of ours and of providers
	calls   [classEnd]int
	faults  [classEnd]int
	strikes [classEnd]int
}

// became is what became of calls of one kind.
type became struct{ calls, opened, joined, cleared, rested, delisted int }

func (t *tally) count(c class, e end, effect strikes.Effect, before, after sight) {
	from := 0
	if !e.caller.outside() {
		from = 1
	}
	b := &t.of[from][e.truth]
	b.calls++
	t.calls[c]++
	if e.truth == ownFault && from == 0 {
		t.faults[c]++
	}
	switch {
	case after.Strikes > before.Strikes:
		b.opened++
		t.strikes[c]++
	case effect == strikes.Increment:
		b.joined++
	}
	if effect == strikes.Clear && after.Cleared > before.Cleared {
		b.cleared++
	}
	if after.Until > before.Until {
		b.rested++
	}
	if after.State == catalog.Delisted && before.State != catalog.Delisted {
		b.delisted++
	}
}

const heading = `# The last simulation through Postgres

` + "`make sim`" + ` writes this file. 500 services of 120 providers are called for days of market time, while our own way out, the facilitator, and callers fail. The generator
knows the truth of every call. The market that runs, recorder, guard and Postgres, has to come to the verdicts of a small model of it, call by call, and the
model to those of an oracle, which knows the truth and the rule and nothing of the policies' code. When an outage of ours was seen the oracle takes from the model,
and by the truth it judges that there was one, how far back it excuses, when it ends, and that none was overlooked which looked like the doing of the services.

| | |
|---|---|
| commit | %s |
| seed | %d |
| calls | %d |
| took | %s |
| calls a second | %d |
| verdict | %s |

`

// file is the result of a run as it is kept.
func (r *run) file(commit string, took time.Duration) string {
	verdict := "every check passed"
	if r.t.Failed() {
		verdict = "FAILED"
	}
	return fmt.Sprintf(heading, commit, r.seed, r.sequence.recorded, took.Round(time.Second), int(float64(r.sequence.recorded)/took.Seconds()), verdict) + r.text()
}

// line says at how many calls everybody came to what they have to. A run that failed failed at one at least.
func (r *run) line() string {
	failed := r.wrong
	if r.t.Failed() {
		failed = max(failed, 1)
	}
	return fmt.Sprintf("%d passed, %d failed\n", max(0, r.sequence.recorded-failed), failed)
}

// text is what a run came to, in tables.
func (r *run) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| whose doing it was, in truth | calls from outside | opened a strike | joined one | cleared some | began a rest | delisted at once | calls of ours and of providers | of these with any effect |\n|---|---|---|---|---|---|---|---|---|\n")
	for d := delivered; d < doingEnd; d++ {
		o, own := r.tally.of[0][d], r.tally.of[1][d]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", d, o.calls, o.opened, o.joined, o.cleared, o.rested, o.delisted, own.calls,
			own.opened+own.joined+own.cleared+own.rested+own.delisted)
	}
	fmt.Fprintf(&b, "\n| services that are, in truth | number | calls | own faults seen from outside | strikes | listed in the end | delisted rightly | delisted wrongly | delisted and put back, as it was our outage |\n|---|---|---|---|---|---|---|---|---|\n")
	for c := healthy; c < classEnd; c++ {
		var n, listed, right, wrong, undone int
		for i, s := range r.sequence.services {
			if s.class != c {
				continue
			}
			n++
			rec := r.memory.records[i]
			switch {
			case rec.state == catalog.Listed:
				listed++
			case rec.foreign() == "":
				right++
			default:
				wrong++
			}
			undone += rec.undone
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", c, n, r.tally.calls[c], r.tally.faults[c], r.tally.strikes[c], listed, right, wrong, undone)
	}
	had := 0
	for _, o := range r.sequence.outages {
		if o.from < r.sequence.now-aftermath {
			had++
		}
	}
	voids := 0
	for _, rec := range r.memory.records {
		voids += rec.voided
	}
	fmt.Fprintf(&b, "\nIn %s of market time there were %d outages of ours. %d of them failed calls as many services at once would, and %d of these were not seen. Seen were %d, of replicas and of the fleet, and %d strikes were voided for them.\n",
		r.sequence.now.Round(time.Minute), had, len(r.patterns.plain), len(missed(r.patterns.plain, r.memory.guard.trips, r.sequence.outages)), len(r.memory.guard.trips), voids)
	return b.String()
}
