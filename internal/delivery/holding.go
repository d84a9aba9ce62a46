package delivery

import (
	"fmt"
	"time"
)

// Holding says when a service is taken off the shelf until somebody has looked at it: where what it does is no failure that counts, and is still
// not what its listing sells. It strikes nobody and is undone by an admin, so it may be wrong; it must not be one caller's doing.
type Holding struct {
	// Calls is how many paid calls of a service have to be known before their share says anything, and Payers how many different wallets have to be
	// among those that went wrong, from how many Networks: what one caller provokes holds nobody. Wallets cost nothing, networks do.
	Calls    int
	Payers   int
	Networks int
	// ExamplePayers is for how many different wallets a service has to refuse the example input of its own listing, and ExampleNetworks from how many
	// networks they have to call.
	ExamplePayers, ExampleNetworks int
	// Window is how far back a call is looked at. What came before the service was last put on the shelf is not, or it would be held again as soon as
	// an admin had put it back.
	Window time.Duration
	// AwayMin and AwayPercent are of how many providers services may be held within Window without anybody having looked: so many, or such a share of
	// all that have one for sale. Where it would be more, the fault is more likely ours, and nobody is held.
	AwayMin, AwayPercent int
}

// HoldingRule is how this market holds services.
var HoldingRule = Holding{Calls: 20, Payers: 3, Networks: 3, ExamplePayers: 2, ExampleNetworks: 2, Window: 24 * time.Hour, AwayMin: 3, AwayPercent: 10}

// HoldingFacts are what a service did with the paid calls from outside that it was asked, as far back as Holding looks. Trials cost nothing, so
// anybody could make as many as it takes: none is in them.
type HoldingFacts struct {
	Asked int
	// Throttled were answered 429, TooLarge with more than the listing allows, Rejected with another 4xx to input that fits the listing.
	Throttled, TooLarge, Rejected int
	FlaggedPayers                 int // different wallets that paid for what was throttled or too large
	RejectedPayers                int // and for what was rejected
	// ExampleFailures are refusals of the listing's own example input.
	ExampleFailures, ExamplePayers int
	// LastExample is when the last of them was recorded, LastServed when a call was last served; zero: never.
	LastExample, LastServed time.Time
	Spread
}

// A Spread is from how many networks, /24 or /48, the calls came that went wrong.
type Spread struct{ FlaggedNetworks, RejectedNetworks, ExampleNetworks int }

// wherever says whether a service would be held if what went wrong came from enough networks. Those are read of the services alone that this is true of.
func (h Holding) wherever(f HoldingFacts) bool {
	h.Networks, h.ExampleNetworks = 0, 0
	_, holds := h.Holds(f)
	return holds
}

// Holds says whether a service is held for review, and why in words.
func (h Holding) Holds(f HoldingFacts) (reason string, holds bool) {
	within := "within " + windowText(h.Window)
	switch {
	case f.ExamplePayers >= h.ExamplePayers && f.ExampleNetworks >= h.ExampleNetworks && f.LastServed.Before(f.LastExample):
		return fmt.Sprintf("it refused the example input of its own listing %d times %s, to %d payers in %d networks, and has served no paid call since",
			f.ExampleFailures, within, f.ExamplePayers, f.ExampleNetworks), true
	case h.most(f.Throttled+f.TooLarge, f.Asked, f.FlaggedPayers, f.FlaggedNetworks):
		return fmt.Sprintf("of %d paid calls %s it throttled %d (429) and answered %d with more than its listing allows, to %d payers in %d networks: over half",
			f.Asked, within, f.Throttled, f.TooLarge, f.FlaggedPayers, f.FlaggedNetworks), true
	case h.most(f.Rejected, f.Asked, f.RejectedPayers, f.RejectedNetworks):
		return fmt.Sprintf("of %d paid calls %s, all with input that fits its listing, it rejected %d with a 4xx, to %d payers in %d networks: over half",
			f.Asked, within, f.Rejected, f.RejectedPayers, f.RejectedNetworks), true
	}
	return "", false
}

// most says whether so many of the calls that were asked are more than half of enough, and more than one caller's.
func (h Holding) most(n, asked, payers, networks int) bool {
	return asked >= h.Calls && payers >= h.Payers && networks >= h.Networks && 2*n > asked
}

// TooMany says whether services of so many providers are more than may be held within Window, of so many that have services for sale or held.
func (h Holding) TooMany(away, providers int) bool {
	return away > max(h.AwayMin, providers*h.AwayPercent/100)
}
