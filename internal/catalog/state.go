package catalog

import (
	"time"

	"market/internal/call"
	"market/internal/refusal"
)

// A State is whether a service is for sale. The empty string is the state of one that is not there yet.
type State string

const (
	Listed    State = "listed"
	Delisted  State = "delisted"  // taken off the shelf by strikes; only an admin puts it back
	Suspended State = "suspended" // taken off by an admin, who says why, until an admin puts it back
	Held      State = "held"      // taken off until an admin has looked at it
	Retired   State = "retired"   // withdrawn, for good
)

// States returns every state.
func States() []State { return []State{Listed, Delisted, Suspended, Held, Retired} }

// Sells says whether a service in this state is asked. The statements of the paid path say the same, as s.state = 'listed'; a test compares.
func (s State) Sells() bool { return s == Listed }

// Returns says that a service in this state may be for sale again without having been put back by a review of its strikes, so that whoever asks is
// told to come back and not that it is gone.
func (s State) Returns() bool { return s == Suspended || s == Held }

// A Cause is why a state changed. Each leads to one state.
type Cause string

const (
	CauseCreated    Cause = "created"
	CauseStrikes    Cause = "strikes"    // as many failures of its own doing as delist
	CauseSuspension Cause = "suspension" // by an admin
	CauseReview     Cause = "review"     // something about it has to be looked at
	CauseRelisting  Cause = "relisting"  // by an admin, after a delisting, a suspension or a review
	CauseWithdrawn  Cause = "withdrawn"  // its owner does not sell it any more

	// A strike that delisted or held the service does not count: the service is again what it was before.
	CauseVoid          Cause = "void"
	CauseVoidSuspended Cause = "void_suspended"
	CauseVoidHeld      Cause = "void_held"
)

// Causes returns every cause.
func Causes() []Cause {
	return []Cause{CauseCreated, CauseStrikes, CauseSuspension, CauseReview, CauseRelisting, CauseWithdrawn,
		CauseVoid, CauseVoidSuspended, CauseVoidHeld}
}

// publicWords are what everybody is told of a cause whose reason was written by a person for the owner and for other admins. The other causes say
// their reason to all.
var publicWords = map[Cause]string{
	CauseSuspension: "suspended by the operator",
	CauseReview:     "held for a review by the operator",
	CauseRelisting:  "put back by the operator",

	CauseVoid:          "put back, because a strike against it does not count",
	CauseVoidSuspended: "suspended by the operator as before, because a strike against it does not count",
	CauseVoidHeld:      "held for a review by the operator and not delisted any more, because a strike against it does not count",
}

// An Actor is what kind of author makes a change.
type Actor string

const (
	ActorRecorder Actor = "recorder" // the paid path, by the evidence of a delivery
	ActorAdmin    Actor = "admin"
	ActorOwner    Actor = "owner"
	ActorSystem   Actor = "system" // the program itself, where nobody asked it to
)

// Actors returns every actor.
func Actors() []Actor { return []Actor{ActorRecorder, ActorAdmin, ActorOwner, ActorSystem} }

// An Author is who makes a change. The zero value is nobody, and may change nothing.
type Author struct {
	Actor Actor
	Name  string // shown to owners and admins: "admin token"
}

// Recorder is the author of what follows from a delivery, AdminToken whoever has the admin token, System the program itself.
var (
	Recorder   = Author{ActorRecorder, "recorder"}
	AdminToken = Author{ActorAdmin, "admin token"}
	System     = Author{ActorSystem, "system"}
)

// A Move is one step that a service's state may take, and who may make it.
type Move struct {
	From  State
	Cause Cause
	By    Actor
	To    State
}

// Moves is the whole state machine: what is not listed cannot happen. The table service_moves is the same, and the database refuses any other; a
// test compares. What leads back from delisted is a review of the strikes: delivery.Review alone makes these moves.
func Moves() []Move {
	return []Move{
		{"", CauseCreated, ActorOwner, Listed},
		{"", CauseCreated, ActorAdmin, Listed},
		{"", CauseCreated, ActorSystem, Listed},

		{Listed, CauseStrikes, ActorRecorder, Delisted},
		// By calls that were under way: relisting it must not pass by its strikes.
		{Suspended, CauseStrikes, ActorRecorder, Delisted},
		{Held, CauseStrikes, ActorRecorder, Delisted},

		// Not from delisted: putting it back would then pass by its strikes.
		{Listed, CauseSuspension, ActorAdmin, Suspended},
		{Held, CauseSuspension, ActorAdmin, Suspended},

		{Listed, CauseReview, ActorAdmin, Held},
		{Listed, CauseReview, ActorRecorder, Held},
		{Listed, CauseReview, ActorSystem, Held},

		{Delisted, CauseRelisting, ActorAdmin, Listed},
		{Suspended, CauseRelisting, ActorAdmin, Listed},
		{Held, CauseRelisting, ActorAdmin, Listed},

		// By the program as well: it voids the strikes that an outage of ours made.
		{Delisted, CauseVoid, ActorAdmin, Listed},
		{Delisted, CauseVoid, ActorSystem, Listed},
		{Held, CauseVoid, ActorAdmin, Listed},
		{Held, CauseVoid, ActorSystem, Listed},
		{Delisted, CauseVoidSuspended, ActorAdmin, Suspended},
		{Delisted, CauseVoidSuspended, ActorSystem, Suspended},
		{Delisted, CauseVoidHeld, ActorAdmin, Held},
		{Delisted, CauseVoidHeld, ActorSystem, Held},

		{Listed, CauseWithdrawn, ActorOwner, Retired},
		{Listed, CauseWithdrawn, ActorAdmin, Retired},
		{Delisted, CauseWithdrawn, ActorOwner, Retired},
		{Delisted, CauseWithdrawn, ActorAdmin, Retired},
		{Suspended, CauseWithdrawn, ActorOwner, Retired},
		{Suspended, CauseWithdrawn, ActorAdmin, Retired},
		{Held, CauseWithdrawn, ActorOwner, Retired},
		{Held, CauseWithdrawn, ActorAdmin, Retired},
	}
}

// movesOf returns the states from which an actor may move a service for a cause, and where that leads; none where it may not at all.
func movesOf(cause Cause, by Actor) (from []State, to State) {
	for _, m := range Moves() {
		if m.Cause == cause && m.By == by {
			from, to = append(from, m.From), m.To
		}
	}
	return from, to
}

// PublicReason is the reason of the service's state in words for everybody. StateReason is for its owner and for admins.
func (s *Service) PublicReason() string { return publicReason(s.StateCause, s.StateReason) }

func publicReason(cause Cause, reason string) string {
	if words, ok := publicWords[cause]; ok {
		return words
	}
	return reason
}

const reasonLenMax = 500

// ParseReason reads the body of a request that decides about a strike: {"reason": "…"}.
func ParseReason(body []byte) (string, error) {
	var problems []refusal.Field
	f, err := openForm(body, &problems)
	if err != nil {
		return "", err
	}
	reason := f.text("reason", 1, reasonLenMax)
	f.end()
	return reason, refused(problems)
}

// ParseOrder reads the body of a request that changes the state of a service, or leaves it: {"reason": "…", "state_since": "…"}. The second is the
// moment of the change of its state that whoever asks has seen last; without it the time is zero.
func ParseOrder(body []byte) (reason string, stateSince time.Time, err error) {
	var problems []refusal.Field
	f, err := openForm(body, &problems)
	if err != nil {
		return "", time.Time{}, err
	}
	reason = f.text("reason", 1, reasonLenMax)
	if f.given("state_since") {
		text := f.text("state_since", 1, 40)
		if stateSince, err = time.Parse(time.RFC3339, text); text != "" && err != nil {
			f.wrong("state_since", "must be the state_since of a service, such as 2026-11-30T01:07:30.000000Z")
		}
	}
	f.end()
	return reason, stateSince, refused(problems)
}

// WhyNot refuses, in words, a change that does not lead out of the state that a service is in, and says who was there first.
func (s *Service) WhyNot(cause Cause) *refusal.Error {
	switch {
	case s.State == Retired:
		return refusal.New(call.Conflict, "the service is retired, which is for good")
	case cause == CauseRelisting && s.State == Listed:
		return refusal.New(call.Conflict, "the service is on the shelf already, %s", s.doneBy())
	case cause == CauseSuspension && s.State == Delisted:
		return refusal.New(call.Conflict, "the service is delisted already, %s: only a review of its strikes puts it back", s.doneBy())
	}
	return refusal.New(call.Conflict, "the service is %s already, %s", s.State, s.doneBy())
}

// Passed refuses, in words, what rests on a state that the service was in and has left, and says who was there first.
func (s *Service) Passed() *refusal.Error {
	return refusal.New(call.Conflict, "the state of the service changed after you looked: it is %s, %s", s.State, s.doneBy())
}

func (s *Service) doneBy() string {
	return "by " + s.StateBy.Name + " at " + s.StateSince.UTC().Format("2006-01-02 15:04:05") + " UTC: " + s.StateReason
}
