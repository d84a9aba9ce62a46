package delivery

import (
	"strings"
	"testing"
	"time"
)

func TestHolding_Holds_MoreThanHalfOfEnoughCallsOfEnoughPayers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		facts HoldingFacts
		want  bool
	}{
		"one call too few":                    {HoldingFacts{Asked: 19, Rejected: 19, RejectedPayers: 19}, false},
		"just enough calls":                   {HoldingFacts{Asked: 20, Rejected: 20, RejectedPayers: 20}, true},
		"one more call":                       {HoldingFacts{Asked: 21, Rejected: 21, RejectedPayers: 21}, true},
		"just under half":                     {HoldingFacts{Asked: 20, Rejected: 9, RejectedPayers: 9}, false},
		"half":                                {HoldingFacts{Asked: 20, Rejected: 10, RejectedPayers: 10}, false},
		"just over half":                      {HoldingFacts{Asked: 20, Rejected: 11, RejectedPayers: 11}, true},
		"half of an odd number, rounded up":   {HoldingFacts{Asked: 21, Rejected: 11, RejectedPayers: 11}, true},
		"half of an odd number, rounded down": {HoldingFacts{Asked: 21, Rejected: 10, RejectedPayers: 10}, false},
		"one payer too few":                   {HoldingFacts{Asked: 20, Rejected: 20, RejectedPayers: 2}, false},
		"just enough payers":                  {HoldingFacts{Asked: 20, Rejected: 20, RejectedPayers: 3}, true},
		"one more payer":                      {HoldingFacts{Asked: 20, Rejected: 20, RejectedPayers: 4}, true},

		"throttled and too large together are just over half":   {HoldingFacts{Asked: 20, Throttled: 6, TooLarge: 5, FlaggedPayers: 3}, true},
		"throttled and too large together are half":             {HoldingFacts{Asked: 20, Throttled: 5, TooLarge: 5, FlaggedPayers: 3}, false},
		"throttled, to one payer too few":                       {HoldingFacts{Asked: 20, Throttled: 20, FlaggedPayers: 2}, false},
		"throttled, one call too few":                           {HoldingFacts{Asked: 19, Throttled: 19, FlaggedPayers: 3}, false},
		"rejections and throttling make no half together":       {HoldingFacts{Asked: 20, Throttled: 10, Rejected: 10, FlaggedPayers: 9, RejectedPayers: 9}, false},
		"payers of what was throttled are none of what was not": {HoldingFacts{Asked: 20, Rejected: 20, FlaggedPayers: 3, RejectedPayers: 1}, false},
		"nothing":                              {HoldingFacts{}, false},
		"rejected, from one network too few":   {HoldingFacts{Asked: 20, Rejected: 20, RejectedPayers: 20, Spread: Spread{RejectedNetworks: 2, FlaggedNetworks: 9, ExampleNetworks: 9}}, false},
		"rejected, from just enough networks":  {HoldingFacts{Asked: 20, Rejected: 20, RejectedPayers: 20, Spread: Spread{RejectedNetworks: 3}}, true},
		"throttled, from one network too few":  {HoldingFacts{Asked: 20, Throttled: 20, FlaggedPayers: 20, Spread: Spread{FlaggedNetworks: 2, RejectedNetworks: 9}}, false},
		"throttled, from just enough networks": {HoldingFacts{Asked: 20, Throttled: 20, FlaggedPayers: 20, Spread: Spread{FlaggedNetworks: 3}}, true},
	} {
		if tt.facts.Spread == (Spread{}) { // as many networks as payers
			tt.facts.Spread = Spread{FlaggedNetworks: tt.facts.FlaggedPayers, RejectedNetworks: tt.facts.RejectedPayers}
		}
		reason, got := HoldingRule.Holds(tt.facts)
		if got != tt.want || got != (reason != "") {
			t.Errorf("%s: held %v for %q, want %v", name, got, reason, tt.want)
		}
	}
}

func TestHolding_Holds_ItsOwnExampleRefusedToTwoAndNothingServedSince(t *testing.T) {
	t.Parallel()
	broken := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		payers   int
		networks int
		served   time.Time
		want     bool
	}{
		"to one payer, however often":          {1, 1, time.Time{}, false},
		"to two, and nothing served at all":    {2, 2, time.Time{}, true},
		"to two in one network, however often": {2, 1, time.Time{}, false},
		"to three":                             {3, 3, time.Time{}, true},
		"served just before the last":          {2, 2, broken.Add(-time.Microsecond), true},
		"served at the same moment":            {2, 2, broken, false},
		"served just after the last":           {2, 2, broken.Add(time.Microsecond), false},
	} {
		f := HoldingFacts{Asked: 9, ExampleFailures: 7, ExamplePayers: tt.payers, LastExample: broken, LastServed: tt.served,
			Spread: Spread{ExampleNetworks: tt.networks}}
		if reason, got := HoldingRule.Holds(f); got != tt.want {
			t.Errorf("%s: held %v for %q, want %v", name, got, reason, tt.want)
		}
	}
	if _, holds := HoldingRule.Holds(HoldingFacts{LastServed: broken}); holds {
		t.Error("a service that refused its example to nobody is held")
	}
}

// The owner and admins read why: the figures in words.
func TestHolding_Holds_SaysTheFigures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		facts HoldingFacts
		want  []string
	}{
		{HoldingFacts{Asked: 31, Rejected: 17, RejectedPayers: 5, Spread: Spread{RejectedNetworks: 4}}, []string{"31 paid calls", "rejected 17", "to 5 payers in 4 networks", "within 24 h"}},
		{HoldingFacts{Asked: 32, Throttled: 18, TooLarge: 3, FlaggedPayers: 6, Spread: Spread{FlaggedNetworks: 3}}, []string{"32 paid calls", "throttled 18", "answered 3 with more", "to 6 payers in 3 networks"}},
		{HoldingFacts{ExampleFailures: 4, ExamplePayers: 2, LastExample: time.Unix(1, 0), Spread: Spread{ExampleNetworks: 2}},
			[]string{"example input of its own listing 4 times", "to 2 payers in 2 networks"}},
	} {
		reason, _ := HoldingRule.Holds(tt.facts)
		for _, words := range tt.want {
			if !strings.Contains(reason, words) {
				t.Errorf("%+v: %q does not say %q", tt.facts, reason, words)
			}
		}
	}
}
