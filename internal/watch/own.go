package watch

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"market/internal/notify"
	"market/internal/pulse"
)

const (
	// apartFrom is how far the clock of a process may be off, and fineUnder when it is right again.
	apartFrom = 5 * time.Second
	fineUnder = 4 * time.Second
)

// process names a process for people.
func process(id uuid.UUID, address string) string { return fmt.Sprintf("the process at %s (replica %s)", address, id) }

// An offset is how far a clock is ahead of the database's, read during a round trip that took so long: it can be off by half of that.
type offset struct{ ahead, took time.Duration }

// apart says whether a clock is off for certain, where it was or was not so when it was looked at last.
func (o offset) apart(was bool) bool {
	least := o.ahead.Abs() - o.took/2
	if was {
		return least >= fineUnder
	}
	return least > apartFrom
}

func (o offset) String() string {
	off := o.ahead.Abs().Round(100 * time.Millisecond)
	if o.ahead < 0 {
		return off.String() + " behind"
	}
	return off.String() + " ahead of"
}

func clockFinding(id uuid.UUID, address string, o offset, was bool) finding {
	return finding{key: key{notify.ClockApart, "replica " + id.String()}, bad: o.apart(was), told: notify.Outage{
		What: fmt.Sprintf("The clock of %s is %s the database's.", process(id, address), o),
		Effect: "That process is wrong by as much about how long an old price stays acceptable, in the times of Retry-After and of sign-ins, and in its log. Strikes, cooldowns, leases and " +
			"refunds go by the database's clock, and payments by the chain's: they are right.",
		Look: "Look at the time synchronisation (NTP) of that machine, and of the database's. The process need not be restarted.",
	}}
}

// loopEffects says what is not done while a loop does not come round, and who does it else.
var loopEffects = map[string]string{
	"heartbeat":      "The other processes take this one for dead, and take over its share of what services can take. Calls go on.",
	"outage guard":   "An outage of our own is not noticed by this process: services may be struck for it.",
	"sweeper":        "Calls that nobody walks any more, and payments that are not final, are not followed by this process; other processes do it as well.",
	"tidy":           "Answers and sign-ins that are too old are not deleted. Nothing else stops.",
	"holding":        "Services that misbehave are not held for review by this process; other processes do it as well.",
	"traffic":        "Nobody is told where traffic comes from. Nothing else stops.",
	"rounds":         "Services that nobody buys are not probed by this process; other processes do it as well.",
	"reload":         "Changes of the catalog and of cooldowns may reach this process late.",
	"notifications":  "Changes of the catalog and of cooldowns reach this process a minute late.",
	"watch":          "This process does not see troubles of its own; other processes see theirs.",
	"watch, deep":    "Whether money and gas are enough, and whether refunds are late, is not looked at by this process.",
	"engine":         "Transactions that are not mined are not sent again by this process: settlements and refunds may stay open.",
	"facilitator":    "It is not known to this process what the facilitator settles: after half a minute it is not used any more.",
	"sources":        "What was reserved and not used is not given back. Limits may be reached too early.",
	"notices":        "Notices are not sent by this process; other processes do it as well.",
	"provider board": "Notices to providers are not sent by this process; other processes do it as well.",
}

// effectOf is what a loop's silence stops. The loops that there are many of are called "name/of what".
func effectOf(loop string) string {
	name, _, _ := strings.Cut(loop, "/")
	if effect, known := loopEffects[name]; known {
		return effect
	}
	return "What it does is not done by this process."
}

// Explained says whether the operator is told what stops with a loop; every loop of the program has to be.
func Explained(loop string) bool {
	name, _, _ := strings.Cut(loop, "/")
	return loopEffects[name] != ""
}

func silenceFinding(id uuid.UUID, address string, s pulse.Silence) finding {
	how := "It hangs."
	if s.Panicked {
		how = "It panics, and the log says where."
	}
	return finding{key: key{notify.WorkStopped, fmt.Sprintf("replica %s/%s", id, s.Loop)}, bad: true, told: notify.Outage{
		What:   fmt.Sprintf("Work of %s has stopped: %q has not come round for %s. %s", process(id, address), s.Loop, span(s.For), how),
		Effect: effectOf(s.Loop),
		Look:   "Look into the log of that process, and restart it: what is under way is finished by whichever process runs.",
	}}
}
