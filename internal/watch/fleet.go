package watch

import (
	"slices"
	"time"

	"market/internal/delivery"
	"market/internal/notify"
)

// Pace is how often is looked, and how long what is seen has to last.
type Pace struct {
	Look    time.Duration // at what a process knows of itself
	Deep    time.Duration // at the chain, and at what is counted in the database
	Lasting time.Duration // until a trouble is told that may pass by itself
	Quiet   time.Duration // until one that is away is over
}

// UsualPace is the one of the program.
var UsualPace = Pace{Look: 15 * time.Second, Deep: time.Minute, Lasting: 2 * time.Minute, Quiet: time.Minute}

// A Report is what a process says of itself to all of them.
type Report struct {
	Up        time.Duration  `json:"up"` // it runs
	Sightings []Sighting     `json:"sightings"`
	Fine      []Fine         `json:"fine"`
	Tries     delivery.Tries `json:"tries"`
}

// A Fine is what a process has looked at and found well.
type Fine struct {
	Kind    notify.Kind `json:"kind"`
	Subject string      `json:"subject"`
}

// seenKinds are the conditions that processes report, each with how many times Lasting it has to last until it is told. An empty wallet and a loop that
// hangs do not pass by themselves, and have their patience already; a switch was set by somebody. Refunds are late for a while, too, when a source that they waited for works again.
var seenKinds = map[notify.Kind]int{
	notify.NetworkNotReady: 1,
	notify.TreasuryShort:   1,
	notify.ClockApart:      1,
	notify.RefundsLate:     2,
	notify.PayoutsParked:   2,
	notify.GasLow:          0,
	notify.WorkStopped:     0,

	notify.PaymentsStopped:  0,
	notify.StrikesSuspended: 0,
	notify.PayoutsStopped:   0,
}

// needWord are those of them that are over only by the word of a process that has looked: one that has just begun to run, or whose node does not answer,
// does not see them either.
var needWord = map[notify.Kind]bool{notify.TreasuryShort: true, notify.GasLow: true, notify.RefundsLate: true, notify.PayoutsParked: true}

// fine returns what of it was found well and needs to be said.
func fine(found []finding) []Fine {
	var well []Fine
	for _, f := range found {
		if needWord[f.kind] && !f.bad {
			well = append(well, Fine{f.kind, f.subject})
		}
	}
	return well
}

// tells says whether a sighting is to be told: the trouble holds, and has held for long enough.
func (p Pace) tells(s Sighting) bool {
	times, known := seenKinds[s.Kind]
	return known && s.Bad && s.For >= time.Duration(times)*p.Lasting
}

// decide returns which troubles are to be raised and which are over, by what all processes say that run, and by what is open. One that has just begun to
// run has not looked for long enough to say that something is over.
func (p Pace) decide(reports []Report, open []key) (raise []Sighting, settle []key) {
	seen, well, settled := map[key]bool{}, map[key]bool{}, len(reports) > 0
	for _, r := range reports {
		settled = settled && r.Up >= p.Quiet
		for _, f := range r.Fine {
			well[key{f.Kind, f.Subject}] = true
		}
		for _, s := range r.Sightings {
			k := key{s.Kind, s.Subject}
			seen[k] = true
			if p.tells(s) && !slices.Contains(open, k) && !slices.ContainsFunc(raise, func(o Sighting) bool { return key{o.Kind, o.Subject} == k }) {
				raise = append(raise, s)
			}
		}
	}
	for _, k := range open {
		if _, ours := seenKinds[k.kind]; ours && settled && !seen[k] && (well[k] || !needWord[k.kind]) {
			settle = append(settle, k)
		}
	}
	return raise, settle
}
