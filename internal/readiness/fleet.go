package readiness

import (
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
)

const (
	// AliveFor is how long a process counts after its last heartbeat, for others and for itself.
	AliveFor = 3 * time.Second
	// joinMargin is by how much the others' heartbeats have to be later than our own row. They read the fleet first and then say that they have, with the
	// time at which they read: so whoever is that much later has seen us.
	joinMargin = 250 * time.Millisecond
	// wordsKeep is the allowance that payments which are believed before they are proved have to leave: what is unproved may have been read so long ago.
	wordsKeep = AliveFor
	// AllowanceMin is the shortest allowance that a process starts with.
	AllowanceMin = time.Second
)

// A Member is a process that runs, as its row says.
type Member struct {
	ID    uuid.UUID
	Beat  time.Time // when it last read the fleet, in market time
	Terms           // zero: it was told none
}

// A Reading is what a process read of the fleet.
type Reading struct {
	Sent    time.Time // before it was asked for, on this process's clock
	At      time.Time // in market time
	Members []Member  // all that run
	// Unproved is what payments are worth, in micro-dollars and by network, that were gone on with before they were proved. A network that is not in it
	// has none, and never has any.
	Unproved map[string]int64
}

// A Fleet is the sum of the terms of all processes that run.
type Fleet struct {
	N      int   // how many there are
	Budget int64 // the least that one of them was told; zero: none was told any
	Rates  int64 // Σr of those without a share
	Bursts int64 // Σc of those without a share
	Shares int   // Σs, in 1/10000
}

// FleetOf sums up. Whoever asks counts once, by its own terms, whether or not its row is among them.
func FleetOf(self uuid.UUID, own Terms, members []Member) Fleet {
	var f Fleet
	f.add(own)
	for _, m := range members {
		if m.ID != self {
			f.add(m.Terms)
		}
	}
	return f
}

func (f *Fleet) add(t Terms) {
	f.N++
	if t == (Terms{}) {
		return
	}
	if f.Budget == 0 || t.Budget < f.Budget {
		f.Budget = t.Budget
	}
	if t.Share > 0 {
		f.Shares += t.Share
		return
	}
	f.Rates, f.Bursts = saturated(f.Rates, t.Rate), saturated(f.Bursts, t.Burst)
}

func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Allowance is how old a proof may get of a process with these terms, where so much is unproved. Whoever has a share has that of the budget, and all others
// have what the shares leave. Shares that are more than the whole are cut down alike.
func (f Fleet) Allowance(own Terms, unproved int64) time.Duration {
	budget := max(0, f.Budget-unproved)
	shares := max(f.Shares, WholeShare)
	if own.Share > 0 {
		return Allowance(budget*int64(own.Share)/int64(shares), own.Burst, own.Rate)
	}
	return Allowance(part(budget, max(0, WholeShare-f.Shares)), f.Bursts, f.Rates)
}

// Words is what may be unproved at most, so that this process keeps an allowance of wordsKeep.
func (f Fleet) Words(own Terms) int64 {
	whole, bursts, rates := int64(max(0, WholeShare-f.Shares)), f.Bursts, f.Rates
	if own.Share > 0 {
		whole, bursts, rates = int64(own.Share)*WholeShare/int64(max(f.Shares, WholeShare)), own.Burst, own.Rate
	}
	if whole == 0 {
		return 0
	}
	keep := bursts
	for range wordsKeep / time.Second {
		keep = saturated(keep, rates)
	}
	if keep > f.Budget {
		return 0
	}
	// Rounded up, because what is left of it has to be enough.
	return max(0, f.Budget-(keep*WholeShare+whole-1)/whole)
}

// Err is why a process with these terms must not run in this fleet beside the others; nil where it may.
func (f Fleet) Err(own Terms, others ...Member) error {
	if own == (Terms{}) {
		return nil
	}
	if f.Shares > WholeShare {
		return fmt.Errorf("MARKET_EXPOSURE_SHARE: the shares of the %d processes that run sum to %s, which is more than 1", f.N, decimal.New(int64(f.Shares), -4))
	}
	if a := f.Allowance(own, 0); a < AllowanceMin {
		return fmt.Errorf("MARKET_EXPOSURE_USD: a proof that payments work could be used for %s, and has to be for a second at least: b is %s USD, and the n = %d processes "+
			"that run send r = %s USD a second to settlement and c = %s USD at once (this one: %s and %s; MARKET_ADMIT_USD_PER_SECOND, MARKET_ADMIT_BURST_USD)",
			a.Truncate(time.Millisecond), usd(f.Budget), f.N, usd(f.Rates), usd(f.Bursts), usd(own.Rate), usd(own.Burst))
	}
	for _, m := range others {
		if m.Terms == (Terms{}) {
			continue
		}
		if a := f.Allowance(m.Terms, 0); a < AllowanceMin {
			return fmt.Errorf("MARKET_EXPOSURE_USD: beside this process %s, which runs, could use a proof that payments work for %s, and has to for a second at least: b is %s USD, "+
				"the shares of the n = %d processes that run sum to %s, and those without one send r = %s USD a second to settlement and c = %s USD at once (that one: %s and %s)",
				m.ID, a.Truncate(time.Millisecond), usd(f.Budget), f.N, decimal.New(int64(f.Shares), -4), usd(f.Rates), usd(f.Bursts), usd(m.Rate), usd(m.Burst))
		}
	}
	return nil
}

// usd is an amount of micro-dollars in dollars.
func usd(micro int64) string { return decimal.New(micro, -6).String() }
