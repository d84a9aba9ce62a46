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
func process(id uuid.UUID, address string) string {
	return fmt.Sprintf("the process at %s (replica %s)", address, id)
}

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
		What: fmt.Sprintf("the clock of %s is %s the database's", process(id, address), o),
		Effect: "by as much that process is wrong about how long an old price stays acceptable, in what it tells callers to wait, about sign-ins, and in its log. Strikes, cooldowns, " +
			"leases and refunds go by the database's clock, and payments by the chain's; they are right, and calls go on",
		Look: "the time synchronisation (NTP) of that machine, and of the database's; nothing has to be restarted",
	}}
}

// loopEffects says what is not done while a loop does not come round, and who does it else.
var loopEffects = map[string]string{
	"readiness": "this process does not learn whether payments still work on that network, and takes none there once what it knows is too old. Other processes take them, " +
		"where there are any",
	"heartbeat":      "the other processes take this one for dead, and its share of what services can take. Calls go on",
	"outage guard":   "this process does not notice an outage of our own, so services may be struck for it. Calls go on",
	"sweeper":        "this process follows neither calls that nobody walks any more nor payments that are not final; other processes do, where there are any. New calls go on",
	"tidy":           "answers and sign-ins that are too old are not deleted by this process. Nothing else stops",
	"holding":        "this process holds no service for review that misbehaves; other processes do, where there are any. Calls go on",
	"traffic":        "this process does not tell where traffic comes from. Nothing else stops",
	"reconciliation": "this process neither holds the chain against our books nor adds up balances; other processes do, where there are any. Calls go on",
	"rounds":         "this process probes no service that nobody buys; other processes do, where there are any. Calls go on",
	"owners":         "who owns services, on which plan and from where, is known here up to a minute late. Calls go on",
	"reload":         "changes of the catalog and of cooldowns that the database did not announce do not reach this process. Calls go on",
	"notifications":  "changes of the catalog and of cooldowns reach this process up to a minute late. Calls go on",
	"watch":          "this process does not tell what is wrong with itself; other processes tell what is wrong with them. Calls go on",
	"deep watch":     "this process does not look whether money and gas are enough, nor whether refunds are late; other processes do, where there are any. Calls go on",
	"engine":         "this process does not send transactions again that were not mined; other processes do, where there are any. New settlements and refunds go on",
	"sources":        "what was reserved of sources and not used is not given back, so our own guards may be reached too early. Calls go on until then",
	"facilitator":    "this process does not hear what the facilitator settles, and stops using it after half a minute. Other facilitators go on",
}

// effectOf is what a loop's silence stops. The loops that there are many of are called "name/of what".
func effectOf(loop string) string {
	name, _, _ := strings.Cut(loop, "/")
	if effect, known := loopEffects[name]; known {
		return effect
	}
	return "what it is for is not done by this process"
}

// Explained says whether the operator is told what stops with a loop; every loop of the program has to be.
func Explained(loop string) bool {
	name, _, _ := strings.Cut(loop, "/")
	return loopEffects[name] != ""
}

func silenceFinding(id uuid.UUID, address string, s pulse.Silence) finding {
	how := "it hangs"
	if s.Panicked {
		how = "it panics, and the log says where"
	}
	return finding{key: key{notify.WorkStopped, fmt.Sprintf("replica %s/%s", id, s.Loop)}, bad: true, told: notify.Outage{
		What:   fmt.Sprintf("%q of %s has not come round for %s: %s", s.Loop, process(id, address), span(s.For), how),
		Effect: effectOf(s.Loop),
		Look:   "the log of that process; then restart it: what is under way is finished by whichever process runs",
	}}
}
