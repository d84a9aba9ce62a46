package switches

import "time"

// A Kind is what a switch stops. The empty string is none.
type Kind string

const (
	// Stop402 has no new caller asked to pay on a network, and no new paid call begun there. Its subject is the network.
	Stop402 Kind = "stop_402"
	// StopPayouts has no provider paid out.
	StopPayouts Kind = "stop_payouts"
	// SuspendStrikes has failures of services measured, and mean nothing: no strike, no cooldown, nothing held for a review.
	SuspendStrikes Kind = "suspend_strikes"
)

// Kinds returns every kind.
func Kinds() []Kind { return []Kind{Stop402, StopPayouts, SuspendStrikes} }

// PerNetwork says that there is a switch of this kind for each network, and not one alone.
func (k Kind) PerNetwork() bool { return k == Stop402 }

// A Name says which switch is meant.
type Name struct {
	Kind    Kind
	Subject string // the network, of a kind that is per network; empty otherwise
}

// String is the name as the audit keeps it: "stop_402 eip155:84532", "suspend_strikes".
func (n Name) String() string {
	if n.Subject == "" {
		return string(n.Kind)
	}
	return string(n.Kind) + " " + n.Subject
}

// A Switch is how one stands. One that nobody has ever set is off, by nobody.
type Switch struct {
	Name
	On     bool
	Reason string // for other admins: callers are not told
	By     string
	Since  time.Time // it was set last; zero: never
}
