package call

// A State is where a paid call stands. Final states have the name of their outcome.
type State string

const (
	Settling State = "settling" // claimed; the authorization may be shown from now on
	// StateReleased: provably nothing of the authorization left us, so the same payment may be sent again.
	StateReleased State = "released"
	Unknown       State = "unknown"  // sent and not proved, neither way
	Rejected      State = "rejected" // the rail said no after the authorization was shown; it is watched on
	Expired       State = "expired"  // proved never to have paid, and never to pay
	Settled       State = "settled"  // proved, and the service was not asked (yet)
	Asked         State = "asked"    // proved, and the service is being asked

	StateServed          State = "served"
	StateRefused         State = "refused"
	StateFailed          State = "failed"
	StateCooldownRefused State = "cooldown_refused"
)

// States returns every state.
func States() []State {
	return []State{Settling, StateReleased, Unknown, Rejected, Expired, Settled, Asked,
		StateServed, StateRefused, StateFailed, StateCooldownRefused}
}

// Final says that nothing leads out of the state.
func (s State) Final() bool {
	switch s {
	case StateServed, StateRefused, StateFailed, StateCooldownRefused:
		return true
	case Settling, StateReleased, Unknown, Rejected, Expired, Settled, Asked:
		return false
	}
	return false
}

// FinalState is the state of a call that ended so.
func FinalState(o Outcome) State { return State(o) }

// A Move is one step that a call's state may take.
type Move struct{ From, To State }

// Moves is the whole state machine: what is not listed cannot happen. Every statement that writes a state names the one it expects.
func Moves() []Move {
	return []Move{
		{Settling, Asked},   // proved, listed, not cooling down
		{Settling, Settled}, // proved, and not to be asked; or found by the sweeper
		{Settling, StateReleased},
		{Settling, Unknown},
		{Settling, Rejected},
		{Settling, Expired},

		{StateReleased, Settling}, // the same payment was sent again

		{Unknown, Asked}, // a retry took the call over and proved the payment
		{Unknown, Settled},
		{Unknown, Rejected}, // the nonce was used by something else
		{Unknown, Expired},

		{Rejected, Settled},      // the rail said no and mined it later: late_settlement
		{Rejected, StateRefused}, // settle_rejected, once its lapse is proved
		{Expired, StateRefused},  // settle_failed

		{Settled, Asked}, // a retry took the call over
		{Settled, StateCooldownRefused},
		{Settled, StateFailed}, // withdrawn, interrupted, late_settlement, settlement_lost

		{Asked, StateServed},
		{Asked, StateRefused}, // rejected_by_service
		{Asked, StateFailed},
	}
}

// CanMove says whether the table allows a step.
func CanMove(from, to State) bool {
	for _, m := range Moves() {
		if m.From == from && m.To == to {
			return true
		}
	}
	return false
}
