package corpustest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"market/internal/call"
)

// table is every row.
func table() []group {
	return []group{
		{"What a service does", moments, serviceRows()},
		{"What a service does to a trial call", moments, trialRows()},
		{"What a caller does", moments, callerRows()},
		{"Streams", moments, streamRows()},
		{"Gates", moments, gateRows()},
		{"Whose traffic it is", moments, originRows()},
		{"One incident, one strike", hours, incidentRows()},
		{"Three strikes", hours, strikeRows()},
		{"What admins decide", hours, reviewRows()},
		{"Where two networks are needed to delist", twoSources, sourceRows()},
		{"Several programs of one fleet", hours, fleetRows()},
		{"Without folding", unfolded, unfoldedRows()},
		{"The chain, and our own trouble", rail, railRows()},
		{"A facilitator that is not ours", refusing, refusingRows()},
		{"Outages of our own", outages, outageRows()},
		{"After a restore", afterRestore, restoredRows()},
	}
}

// elsewhere are reasons that no call on /s/ or /try/ is answered with: they are of the API beside them.
var elsewhere = map[call.Reason]string{
	call.InvalidRequest:   "a listing or an edit that is not well-formed; what a call sends is input_invalid or payment_malformed",
	call.InvalidParameter: "a query of a list",
	call.Unauthorized:     "the API without what signs in to it; of calls only a trial whose sign-in does not hold, which ends before it is one",
	call.Conflict:         "two admins at once",
	call.RevisionChanged:  "an edit of a listing that somebody else edited",
	call.PlanLimit:        "a listing of which the plan of its account has no more",
	call.Forbidden:        "somebody who is known and may not",
	call.TooMany:          "a network, or an account, that asks for too much of the API in a while",
}

// gaps are the reasons that rows should come to and do not, and those that they come to and are excepted.
func gaps(rows []*played) (complaints []string) {
	seen := map[call.Reason]bool{}
	for _, p := range rows {
		if p.want.outcome != "" {
			seen[p.want.reason] = true
			continue
		}
		if _, ends := call.RowOf(p.want.reason); !ends {
			seen[p.want.reason] = true
		}
	}
	for _, r := range call.Reasons() {
		switch why, excepted := elsewhere[r]; {
		case excepted && seen[r]:
			complaints = append(complaints, fmt.Sprintf("%s has a scenario and is excepted: %s", r, why))
		case !excepted && !seen[r]:
			complaints = append(complaints, fmt.Sprintf("no scenario comes to %s", r))
		}
	}
	return complaints
}

// Whatever a call can end with has a row that comes to it, with the outcome and the party that the code's own table gives it.
func TestTable_EveryReasonHasAScenario(t *testing.T) {
	t.Parallel()
	for _, complaint := range gaps(numbered()) {
		t.Error(complaint)
	}
}

// A reason whose only scenario is gone is told by its name.
func TestTable_AReasonWithoutAScenarioIsTold(t *testing.T) {
	t.Parallel()
	rows := slices.DeleteFunc(numbered(), func(p *played) bool { return p.want.reason == call.RefundLimit })
	if got, want := gaps(rows), []string{"no scenario comes to refund_limit"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// Rows say of outcome, reason and party what the code's table says. Only an outage of ours changes the party.
func TestTable_RowsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	for _, p := range numbered() {
		w := p.want
		if w.outcome == "" {
			continue
		}
		if p.where == outages && w.party == call.Platform {
			continue
		}
		if !slices.Contains(call.Rows(), call.Row{Outcome: w.outcome, Reason: w.reason, Party: w.party}) {
			t.Errorf("%s: %s · %s · %s is in no row of the code", p.name, w.outcome, w.reason, w.party)
		}
	}
}

// Two rows of one name would hide each other.
func TestTable_NamesAreSentencesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range numbered() {
		if seen[p.name] || p.name == "" || strings.ContainsAny(p.name, "|`\n/") {
			t.Errorf("the name %q stands twice, or breaks the page or the name of a test", p.name)
		}
		seen[p.name] = true
	}
	if n := len(seen); n < 80 {
		t.Errorf("%d rows are left", n)
	}
}
