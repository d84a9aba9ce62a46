package strikes_test

import (
	"testing"

	"market/internal/strikes"
)

func TestPolicy_Verdict_DelistsAtTheLimitAndHoldsWhereTheEvidenceHasTooFewSources(t *testing.T) {
	t.Parallel()
	anySource, several := strikes.Policy{Limit: 3}, strikes.Policy{Limit: 3, Sources: 2}
	for name, tt := range map[string]struct {
		policy        strikes.Policy
		open, sources int
		want          strikes.Verdict
	}{
		"no strike":                                  {anySource, 0, 0, strikes.Stays},
		"one below the limit":                        {anySource, 2, 1, strikes.Stays},
		"the limit":                                  {anySource, 3, 1, strikes.Delists},
		"one past the limit":                         {anySource, 4, 1, strikes.Delists},
		"one source where one is asked for":          {strikes.Policy{Limit: 3, Sources: 1}, 3, 1, strikes.Delists},
		"one below the limit, of too few sources":    {several, 2, 1, strikes.Stays},
		"one below the limit, of enough sources":     {several, 2, 2, strikes.Stays},
		"the limit, of one source too few":           {several, 3, 1, strikes.Holds},
		"the limit, of just enough sources":          {several, 3, 2, strikes.Delists},
		"the limit, of more sources than are needed": {several, 3, 3, strikes.Delists},
		"past the limit, of one source too few":      {several, 4, 1, strikes.Holds},
		"the limit, of no known source":              {several, 3, 0, strikes.Holds},
		"the limit, of none, where any will do":      {strikes.Policy{Limit: 3, Sources: 1}, 3, 0, strikes.Delists},
	} {
		if got := tt.policy.Verdict(tt.open, tt.sources); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestVerdict_EachHasAWordOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"invalid": true}
	for _, v := range []strikes.Verdict{strikes.Stays, strikes.Holds, strikes.Delists} {
		if seen[v.String()] {
			t.Errorf("verdict %d is called %q, which is another's", v, v)
		}
		seen[v.String()] = true
	}
	if got := strikes.Verdict(0).String(); got != "invalid" {
		t.Errorf("the zero verdict is called %q", got)
	}
}
