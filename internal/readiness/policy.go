package readiness

import (
	"math"
	"math/bits"
	"time"
)

// WholeShare is a share of everything, in the unit of Terms.Share.
const WholeShare = 10_000

// Allowance is how old a proof may get before (b − Σc) / Σr lets no more be sent: in micro-dollars, what may be lost since the last proof, what all processes
// together send at once, and what they send a second. It is rounded down, and zero where nothing is left.
func Allowance(budget, bursts, rates int64) time.Duration {
	left := budget - bursts
	if left <= 0 || rates <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(left), uint64(time.Second))
	if high >= uint64(rates) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(rates))
	return time.Duration(min(quotient, math.MaxInt64))
}

// part is a share of an amount, rounded down. An amount is far under 2^63/10000: the budget is at most a million dollars.
func part(amount int64, share int) int64 { return amount * int64(share) / WholeShare }

// A result is what is known of one capability of a network. Its times are those at which looks and settlements began.
type result struct {
	good     time.Time // of the newest proof; zero: there is none
	until    time.Time // to which the authority lets it be used; zero: it said nothing
	no       error     // a definite no, which stands until a look proves the opposite
	failed   time.Time // of the newest look that said nothing
	whyFails error
}

// found takes a look in that began at a time. Whoever looked before the process may use anything (notBefore) proves nothing, and is heard where it says no.
func (r *result) found(err error, began time.Time, validFor time.Duration, notBefore time.Time) {
	switch {
	case err == nil && began.Before(notBefore):
	case err == nil:
		if began.After(r.good) {
			r.good = began
		}
		r.no, r.until = nil, time.Time{}
		if validFor > 0 {
			r.until = began.Add(validFor)
		}
	case denied(err):
		r.no = err
	default:
		r.failed, r.whyFails = began, err
	}
}

// proved takes a settlement or refund in that began at a time and succeeded. It makes a proof younger; it is none where there is none, and lifts no definite
// no: a look asks for more than it shows.
func (r *result) proved(began time.Time) {
	if r.no == nil && !r.good.IsZero() && began.After(r.good) {
		r.good = began
	}
}

// judge says how the capability stands at a moment, where its proof counts from a time on and may be used for so long. On the boundary it is too old.
func (r *result) judge(now, from time.Time, allowance time.Duration) Proof {
	p := Proof{State: Ready, Age: -1}
	if !r.good.IsZero() {
		p.Age = elapsed(from, now)
	}
	lastFailed := r.failed.After(r.good)
	if lastFailed {
		p.Why = r.whyFails
	}
	switch {
	case r.no != nil:
		p.State, p.Cause, p.Why = NotReady, CauseDenied, r.no
	case r.good.IsZero():
		p.State, p.Cause = NotReady, CauseNeverVerified
	case p.Age >= allowance, !r.until.IsZero() && elapsed(r.until, now) >= 0:
		p.State, p.Cause = NotReady, CauseTooOld
	case lastFailed:
		p.State = Degraded
	}
	return p
}

// elapsed is how much time has passed by the clock that says more: the one that nobody sets stands still while the machine sleeps, and others do not.
func elapsed(from, now time.Time) time.Duration {
	return max(now.Sub(from), now.Round(0).Sub(from.Round(0)))
}
