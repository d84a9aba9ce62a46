package readiness

import (
	"fmt"
	"time"
)

// A State is whether work is taken.
type State uint8

// States.
const (
	_ State = iota
	// Ready is verified and young.
	Ready
	// Degraded is that the last look said nothing, and the result before it may still be used: work is taken.
	Degraded
	// NotReady is that no work is taken; the Cause says why.
	NotReady
)

// String is the state's name.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Degraded:
		return "degraded"
	case NotReady:
		return "not_ready"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Admits says whether work is taken.
func (s State) Admits() bool { return s == Ready || s == Degraded }

// A Cause is why a network is not ready.
type Cause uint8

// Causes.
const (
	_ Cause = iota
	// CauseUnknown is that nobody checks the network.
	CauseUnknown
	// CauseStopped is that an admin has switched it off, or that the books differ there.
	CauseStopped
	// CauseLimited is that a source which is needed takes no work.
	CauseLimited
	// CauseNoDatabase is that this process has not been heard of in the database for three heartbeats.
	CauseNoDatabase
	// CauseJoining is that the other processes may not know of this one yet.
	CauseJoining
	// CauseDenied is a definite no of the authority.
	CauseDenied
	// CauseNeverVerified is that nothing has been proved yet.
	CauseNeverVerified
	// CauseTooOld is that what was proved last is older than it may be.
	CauseTooOld
	// CauseSpent is that the bucket gives no more at the moment: what may be sent to settlement in a second has been sent.
	CauseSpent
	// CauseTooDear is that one call costs more than the bucket ever gives.
	CauseTooDear
)

var causes = map[Cause]string{
	CauseUnknown: "unknown", CauseStopped: "stopped", CauseLimited: "limited", CauseNoDatabase: "no_database", CauseJoining: "joining", CauseDenied: "denied",
	CauseNeverVerified: "never_verified", CauseTooOld: "too_old", CauseSpent: "spent", CauseTooDear: "too_dear",
}

// String is the cause's name.
func (c Cause) String() string {
	if name := causes[c]; name != "" {
		return name
	}
	return fmt.Sprintf("cause %d", uint8(c))
}

// Closed is why no work, or not this work, is taken on a network. Where something else said so (a source that is out, a switch), errors.As finds it.
type Closed struct {
	Network string
	Cause   Cause
	Why     error         // what was found, where somebody looked; nil: the cause says all
	Wait    time.Duration // until it is worth asking again, where that is known
}

// Error says which network and why.
func (c *Closed) Error() string {
	if c.Why != nil {
		return c.Why.Error()
	}
	return fmt.Sprintf("network %s: %s", c.Network, c.Cause)
}

// Unwrap returns what was found.
func (c *Closed) Unwrap() error { return c.Why }

// A Proof is how one capability of a network stands.
type Proof struct {
	State State
	Cause Cause         // where it is not ready
	Age   time.Duration // of what was proved last; negative: nothing was
	Why   error         // what the last look said, where it proved nothing
}

// A Standing is how a network stands at a moment.
type Standing struct {
	Network        string
	State          State
	Cause          Cause // where it is not ready
	Why            error // nil where it is ready
	Settle, Refund Proof
	Allowance      time.Duration // how old a proof may get
}
