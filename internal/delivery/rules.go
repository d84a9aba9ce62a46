package delivery

import (
	"time"

	"market/internal/call"
	"market/internal/cooldown"
	"market/internal/strikes"
)

// A Rule says what follows from one end of a call from outside: one row of the table that callers and providers are held to. It is read from the
// code that decides, and not written beside it.
type Rule struct {
	call.Row
	Pays    Pays
	Strikes string // what it does to the service's strikes: none, increment or clear
	// Rest is how long the service rests; RestMax, where it is longer, what it may ask for itself.
	Rest, RestMax time.Duration
}

// Pays says where a caller's money is after a call has ended. The empty string is no such place.
type Pays string

const (
	PaysYes      Pays = "yes"
	PaysNo       Pays = "no"       // it never moved, or the chain took it back
	PaysRefunded Pays = "refunded" // it moved, and comes back whole
)

// Rules returns the row of every end that a call can come to. base is how long a service rests after a failure.
func Rules(base time.Duration) []Rule {
	var rules []Rule
	for _, row := range call.Rows() {
		r := Rule{Row: row, Pays: paysOf(row), Strikes: strikes.EffectOf(row.Outcome, row.Party, row.Reason, call.External).String(),
			Rest: cooldown.After(row.Outcome, row.Party, row.Reason, call.External, 0, base)}
		r.RestMax = max(r.Rest, cooldown.After(row.Outcome, row.Party, row.Reason, call.External, 24*time.Hour, base))
		rules = append(rules, r)
	}
	return rules
}

// paysOf says where the money is. A refusal comes before it moves, but for that of the service itself.
func paysOf(row call.Row) Pays {
	switch {
	case row.Outcome == call.Served:
		return PaysYes
	case row.Outcome == call.Refused && row.Reason != call.RejectedByService, row.Reason == call.SettlementLost:
		return PaysNo
	}
	return PaysRefunded
}
