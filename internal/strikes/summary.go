package strikes

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Facts are what is read about a service that carries a strike.
type Facts struct {
	Service uuid.UUID
	Slug    string
	Name    string
	State   string // of the service
	Sells   bool   // it is on the shelf
	Open    int    // strikes that count at the next failure
	Spread  Spread // of their evidence
	Clears  Clears
}

// A Summary is the check before a delisting: what the strikes of a service rest on, and what comes next.
type Summary struct {
	Facts
	Policy       Policy
	Concentrated bool
	Words        string // "3 of 3 from one address in 28 min"
	Next         string // what happens at the next failure
	ClearedWords string // "cleared 6 times by trial calls from one address"; empty: never in the window
}

// Summarize says what the facts mean by a policy.
func (p Policy) Summarize(f Facts) Summary {
	return Summary{Facts: f, Policy: p, Concentrated: f.Spread.Concentrated(), Words: f.Spread.Words(), Next: p.next(f), ClearedWords: f.Clears.Words()}
}

// next says what a failure would do that is an incident of its own. One whose call was asked before the last strike stopped folding joins that.
func (p Policy) next(f Facts) string {
	if !f.Sells {
		return fmt.Sprintf("it is %s and gets no calls", f.State)
	}
	open, nth := f.Open+1, fmt.Sprintf("strike %d of %d", f.Open+1, p.Limit)
	needed := fmt.Sprintf("%s, and its evidence is to come from %d networks", nth, p.Sources)
	// The next failure comes from a network that is known, or from one more.
	switch known, other := p.Verdict(open, max(1, f.Spread.Sources)), p.Verdict(open, f.Spread.Sources+1); {
	case known == Stays:
		return "the next failure is " + nth
	case known == Delists:
		return "the next failure delists it: " + nth
	case other == Delists:
		return "the next failure delists it if it comes from another network, and holds it for a review if not: " + needed
	}
	return "the next failure holds it for a review: " + needed
}

// Before orders the queue of those who check: evidence that rests on few first, then what is nearer to the limit, then what failed last. It is for
// slices.SortFunc.
func (s Summary) Before(o Summary) int {
	if s.Concentrated != o.Concentrated {
		if s.Concentrated {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(s.Policy.Limit-s.Open, o.Policy.Limit-o.Open), o.Spread.Last.Compare(s.Spread.Last), strings.Compare(s.Slug, o.Slug))
}

// Clears are the successes that cleared strikes of a service within the window: they decide as much as failures do.
type Clears struct {
	Times     int // successes that cleared one strike or more
	Trials    int // of them, which cost their callers nothing
	Sources   int // different networks
	Addresses int // different addresses
	Last      time.Time
}

// Words says who cleared, in one line; empty where nobody did.
func (c Clears) Words() string {
	times := "once"
	switch {
	case c.Times == 0:
		return ""
	case c.Times > 1:
		times = fmt.Sprintf("%d times", c.Times)
	}
	by := fmt.Sprintf("%d trial and %d paid calls", c.Trials, c.Times-c.Trials)
	switch {
	case c.Times == 1 && c.Trials == 1:
		by = "a trial call"
	case c.Times == 1:
		by = "a paid call"
	case c.Trials == c.Times:
		by = "trial calls"
	case c.Trials == 0:
		by = "paid calls"
	}
	return fmt.Sprintf("cleared %s by %s from %s", times, by, from(c.Sources, c.Addresses))
}
