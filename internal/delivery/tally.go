package delivery

import (
	"math"
	"time"
)

// A Tally is what a service did with the paid calls from outside that reached it within one window, and with the trial calls beside them. It
// measures and enforces nothing: strikes are counted elsewhere, from other rows. Refusals of ours, before a service is asked, are not in it.
type Tally struct {
	Window     time.Duration
	Served     int
	Failed     int // of the service's own doing
	Refused    int // by the service, with a 4xx: the caller had its money back
	Resting    int // met the service's cooldown: not asked, and the caller had its money back
	Elsewhere  int // not delivered, and the fault was ours, the caller's or the chain's
	Left       int // streams whose callers left before the end, and paid: that says nothing about the service
	Payers     int // different wallets that paid for the calls of N
	P50, P99   time.Duration
	LastServed time.Time // zero: never in the window
	// Since is the oldest call that is counted, where there were more in the window: the newest are. Zero: all are counted.
	Since time.Time
	// Trials cost nothing, so anybody can make them look like anything: they are in none of the figures above.
	Trials, TrialsServed int
}

// N is how many calls say something about whether the service delivers.
func (s Tally) N() int { return s.Served + s.Failed }

// Newest says that there were more calls in the window than are counted.
func (s Tally) Newest() bool { return !s.Since.IsZero() }

// Delivered is the share of N that was served, from 0 to 1; false where nothing is known.
func (s Tally) Delivered() (float64, bool) {
	if s.N() == 0 {
		return 0, false
	}
	return float64(s.Served) / float64(s.N()), true
}

const (
	// scoreOne is the score of a service that always delivers.
	scoreOne = 1_000_000
	// payerWorth is for how many calls one payer counts in a score.
	payerWorth = 20
)

// Score orders services by how well they deliver, from 0 to 1,000,000: the lower end of the 95 % interval (Wilson) of the delivered share, so
// that few calls do not outrank many, nor many calls of few payers those of many. A service without calls has 0.
func (s Tally) Score() int {
	share, known := s.Delivered()
	if !known {
		return 0
	}
	const z = 1.959964
	n := float64(min(s.N(), payerWorth*max(1, s.Payers)))
	middle := share + z*z/(2*n)
	margin := z * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return int(max(0, math.Floor((middle-margin)/(1+z*z/n)*scoreOne)))
}
