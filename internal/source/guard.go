package source

import "math"

// A Guard bounds what we let through to a source in a day. It is no budget, which is where the money is: it follows normal use, so that growth never
// meets it and a loop does within the day.
type Guard struct {
	Floor        int64 // units a day that are let through in any case, chosen in money; 0: there is no cap
	SurgePercent int64 // of the busiest day; 0: the floor alone, as for a source that is free and limits the rate
}

// Cap is how many units a day may be used: max(floor, ceil(surge x busiest)), with the busiest day as Facts knows it. Without a floor there is none.
func Cap(g Guard, busiest int64) int64 {
	if g.Floor <= 0 {
		return math.MaxInt64
	}
	if g.SurgePercent <= 0 || busiest <= 0 {
		return g.Floor
	}
	// Whole days and the rest apart, so that nothing overflows before it is known to.
	whole, rest := busiest/100, busiest%100
	if whole > (math.MaxInt64-g.SurgePercent)/g.SurgePercent {
		return math.MaxInt64
	}
	return max(g.Floor, whole*g.SurgePercent+(rest*g.SurgePercent+99)/100)
}

// A Class is what a unit is for. When little of a day's cap is left, it goes by class.
type Class int

const (
	_          Class = iota // invalid
	Refund                  // gives a caller its money back: first
	Payout                  // pays a provider: after refunds
	Settlement              // takes a payment, with what may have to be given back: last
	Other                   // whatever is for nobody's money: last

	classEnd // keep last
)

func (c Class) String() string { return word(int(c), "", "refund", "payout", "settlement", "other") }

// Classes returns every class.
func Classes() []Class { return []Class{Refund, Payout, Settlement, Other} }

// A Waiting is how many units work that is already owed will want of a source.
type Waiting struct{ Refunds, Payouts int64 }

// Ceiling is up to where a class may use a cap. Of the last tenth new settlements leave what refunds and payouts that wait will want, and payouts what
// refunds will.
func Ceiling(c Class, limit int64, w Waiting) int64 {
	var keep int64
	switch c {
	case Refund:
		return limit
	case Payout:
		keep = max(0, w.Refunds)
	case Settlement, Other:
		keep = max(0, w.Refunds)
		if more := max(0, w.Payouts); keep > math.MaxInt64-more {
			keep = math.MaxInt64
		} else {
			keep += more
		}
	}
	return limit - min(keep, tenth(limit))
}

// pieceOfWork is how many units new work wants at once: a call wants one for its payment and one for the refund that it may come to.
const pieceOfWork = 2

// usedUp says that there is no room for new work below the last tenth of a cap.
func usedUp(used, limit int64) bool { return used > limit-tenth(limit)-pieceOfWork }

// tenth is the last part of a cap, in which the classes differ.
func tenth(limit int64) int64 { return limit / 10 }
