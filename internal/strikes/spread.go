package strikes

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// A Spread is how evidence is spread over those who called: few of them can make many failures.
type Spread struct {
	Evidence int // deliveries
	Trials   int // of them, which cost their callers nothing
	First    time.Time
	Last     time.Time

	Sources       int // different networks
	LargestSource netip.Prefix
	FromLargest   int // deliveries of LargestSource
	Addresses     int // different addresses in LargestSource

	Payers       int // different wallets
	LargestPayer common.Address
	ByLargest    int // deliveries that LargestPayer paid for
}

// Span is the time from the first to the last evidence.
func (s Spread) Span() time.Duration { return s.Last.Sub(s.First) }

// SourceShare is the part of the evidence that comes from the largest source, and PayerShare what the largest payer paid for, both from 0 to 1.
func (s Spread) SourceShare() float64 { return share(s.FromLargest, s.Evidence) }

// PayerShare is like SourceShare.
func (s Spread) PayerShare() float64 { return share(s.ByLargest, s.Evidence) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Concentrated says that the evidence rests on one source or on one payer: four fifths of it or more. It may all be true, and it may be one caller
// that knows how to make a healthy service fail.
func (s Spread) Concentrated() bool {
	return mostly(s.FromLargest, s.Evidence) || mostly(s.ByLargest, s.Evidence)
}

func mostly(part, whole int) bool { return whole > 0 && 5*part >= 4*whole }

// Words says in one line what there is to be wary of. It names no address.
func (s Spread) Words() string {
	switch {
	case s.Evidence == 0:
		return "no evidence"
	case mostly(s.FromLargest, s.Evidence):
		return fmt.Sprintf("%d of %d from %s%s", s.FromLargest, s.Evidence, from(1, s.Addresses), within(s.Span()))
	case mostly(s.ByLargest, s.Evidence):
		return fmt.Sprintf("%d of %d paid for by one wallet, from %s%s", s.ByLargest, s.Evidence, from(s.Sources, 0), within(s.Span()))
	}
	return fmt.Sprintf("%d from %s%s", s.Evidence, from(s.Sources, 0), within(s.Span()))
}

// from says in words that something comes from so many networks, and where that is one, from how many addresses in it.
func from(networks, addresses int) string {
	switch {
	case networks > 1:
		return fmt.Sprintf("%d networks", networks)
	case addresses == 1:
		return "one address"
	}
	return "one network"
}

// within is a span for people; a single moment is not worth a word.
func within(d time.Duration) string {
	switch {
	case d < time.Second:
		return ""
	case d.Round(time.Second) < 2*time.Minute:
		return fmt.Sprintf(" in %d s", d.Round(time.Second)/time.Second)
	case d.Round(time.Minute) < 2*time.Hour:
		return fmt.Sprintf(" in %d min", d.Round(time.Minute)/time.Minute)
	}
	return fmt.Sprintf(" in %d h", d.Round(time.Hour)/time.Hour)
}
