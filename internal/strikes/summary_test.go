package strikes_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"market/internal/strikes"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// spread is so much evidence of so many networks and wallets, over a time. Of addresses there is one in the largest network.
func spread(evidence, networks, ofLargest, payers, byLargest int, span time.Duration) strikes.Spread {
	return strikes.Spread{Evidence: evidence, First: noon, Last: noon.Add(span), Sources: networks, FromLargest: ofLargest, Addresses: 1,
		LargestSource: netip.MustParsePrefix("203.0.113.0/24"), Payers: payers, ByLargest: byLargest}
}

func TestSpread_IsConcentratedFromFourFifthsOnAndSaysSo(t *testing.T) {
	t.Parallel()
	many := spread(3, 1, 3, 3, 1, 28*time.Minute)
	many.Addresses = 2
	for name, tt := range map[string]struct {
		spread       strikes.Spread
		concentrated bool
		words        string
	}{
		"nothing":                                  {strikes.Spread{}, false, "no evidence"},
		"one delivery":                             {spread(1, 1, 1, 1, 1, 0), true, "1 of 1 from one address"},
		"one address":                              {spread(3, 1, 3, 3, 1, 28*time.Minute), true, "3 of 3 from one address in 28 min"},
		"one network with several addresses":       {many, true, "3 of 3 from one network in 28 min"},
		"trial calls of one address":               {spread(3, 1, 3, 0, 0, 28*time.Minute), true, "3 of 3 from one address in 28 min"},
		"just below four fifths of a network":      {spread(9, 2, 7, 9, 1, time.Hour), false, "9 from 2 networks in 60 min"},
		"four fifths of a network":                 {spread(5, 2, 4, 5, 1, time.Hour), true, "4 of 5 from one address in 60 min"},
		"just above four fifths of a network":      {spread(6, 2, 5, 6, 1, time.Hour), true, "5 of 6 from one address in 60 min"},
		"just below four fifths of a wallet":       {spread(9, 5, 2, 2, 7, time.Hour), false, "9 from 5 networks in 60 min"},
		"four fifths of a wallet":                  {spread(5, 5, 1, 2, 4, time.Hour), true, "4 of 5 paid for by one wallet, from 5 networks in 60 min"},
		"just above four fifths of a wallet":       {spread(6, 5, 2, 2, 5, time.Hour), true, "5 of 6 paid for by one wallet, from 5 networks in 60 min"},
		"two callers that failed once each":        {spread(2, 2, 1, 2, 1, 90*time.Second), false, "2 from 2 networks in 90 s"},
		"a span just below two minutes":            {spread(2, 2, 1, 2, 1, 2*time.Minute-1), false, "2 from 2 networks in 2 min"},
		"a span of two minutes":                    {spread(2, 2, 1, 2, 1, 2*time.Minute), false, "2 from 2 networks in 2 min"},
		"a span just below two hours":              {spread(2, 2, 1, 2, 1, 2*time.Hour-1), false, "2 from 2 networks in 2 h"},
		"a span of 174 s":                          {spread(2, 2, 1, 2, 1, 174*time.Second), false, "2 from 2 networks in 3 min"},
		"a span of two hours":                      {spread(2, 2, 1, 2, 1, 2*time.Hour), false, "2 from 2 networks in 2 h"},
		"a moment, which is not worth a word":      {spread(2, 2, 1, 2, 1, time.Second-1), false, "2 from 2 networks"},
		"a second":                                 {spread(2, 2, 1, 2, 1, time.Second), false, "2 from 2 networks in 1 s"},
		"one wallet from one address: the address": {spread(3, 1, 3, 1, 3, time.Minute), true, "3 of 3 from one address in 60 s"},
	} {
		if got := tt.spread.Concentrated(); got != tt.concentrated {
			t.Errorf("%s: concentrated = %v, want %v", name, got, tt.concentrated)
		}
		if got := tt.spread.Words(); got != tt.words {
			t.Errorf("%s: %q, want %q", name, got, tt.words)
		}
	}
}

func TestSpread_SharesAreOfTheWhole(t *testing.T) {
	t.Parallel()
	s := spread(4, 2, 3, 2, 1, 0)
	if s.SourceShare() != 0.75 || s.PayerShare() != 0.25 {
		t.Errorf("shares %v and %v, want 0.75 and 0.25", s.SourceShare(), s.PayerShare())
	}
	if none := (strikes.Spread{}); none.SourceShare() != 0 || none.PayerShare() != 0 {
		t.Errorf("of nothing: shares %v and %v", none.SourceShare(), none.PayerShare())
	}
}

func TestPolicy_Summarize_SaysWhatTheNextFailureWouldDo(t *testing.T) {
	t.Parallel()
	anySource := strikes.Policy{Limit: 3}
	needing := func(sources int) strikes.Policy { return strikes.Policy{Limit: 3, Sources: sources} }
	for name, tt := range map[string]struct {
		policy        strikes.Policy
		state         string
		open, sources int
		want          string
	}{
		"without a strike":                    {anySource, "listed", 0, 0, "the next failure is strike 1 of 3"},
		"two below the limit":                 {anySource, "listed", 1, 1, "the next failure is strike 2 of 3"},
		"one below the limit":                 {anySource, "listed", 2, 1, "the next failure delists it: strike 3 of 3"},
		"of one source too few":               {needing(2), "listed", 2, 1, "the next failure delists it if it comes from another network, and holds it for a review if not: strike 3 of 3, and its evidence is to come from 2 networks"},
		"of two sources too few":              {needing(3), "listed", 2, 1, "the next failure holds it for a review: strike 3 of 3, and its evidence is to come from 3 networks"},
		"of enough sources":                   {needing(2), "listed", 2, 2, "the next failure delists it: strike 3 of 3"},
		"below the limit, whatever is needed": {needing(2), "listed", 1, 1, "the next failure is strike 2 of 3"},
		"delisted":                            {anySource, "delisted", 3, 1, "it is delisted and gets no calls"},
		"held":                                {needing(2), "held", 3, 1, "it is held and gets no calls"},
	} {
		s := tt.policy.Summarize(strikes.Facts{State: tt.state, Sells: tt.state == "listed", Open: tt.open, Spread: spread(max(1, tt.open), tt.sources, 1, 1, 1, 0)})
		if s.Next != tt.want {
			t.Errorf("%s: %q, want %q", name, s.Next, tt.want)
		}
	}
}

func TestSummary_Before_ConcentratedEvidenceComesFirstThenWhatIsNearerToTheLimitThenTheNewest(t *testing.T) {
	t.Parallel()
	policy := strikes.Policy{Limit: 3}
	one := func(slug string, open int, s strikes.Spread) strikes.Summary {
		return policy.Summarize(strikes.Facts{Slug: slug, State: "listed", Sells: true, Open: open, Spread: s})
	}
	want := []strikes.Summary{
		one("concentrated, at the limit", 3, spread(3, 1, 3, 1, 3, 0)),
		one("concentrated, newer", 2, spread(2, 1, 2, 1, 2, time.Second)),
		one("concentrated, a", 2, spread(2, 1, 2, 1, 2, 0)),
		one("concentrated, b", 2, spread(2, 1, 2, 1, 2, 0)),
		one("concentrated, far from the limit", 1, spread(9, 1, 9, 1, 9, time.Hour)),
		one("spread, at the limit", 3, spread(3, 3, 1, 3, 1, 0)),
		one("spread, newer", 2, spread(2, 2, 1, 2, 1, time.Second)),
		one("spread, older", 2, spread(2, 2, 1, 2, 1, 0)),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, strikes.Summary.Before)
	for i := range want {
		if got[i].Slug != want[i].Slug {
			t.Errorf("place %d: %s, want %s", i, got[i].Slug, want[i].Slug)
		}
	}
}

func TestClears_SayWhoCleared(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]strikes.Clears{
		"": {},
		"cleared once by a trial call from one address":                {Times: 1, Trials: 1, Sources: 1, Addresses: 1},
		"cleared once by a paid call from one address":                 {Times: 1, Sources: 1, Addresses: 1},
		"cleared 6 times by trial calls from one address":              {Times: 6, Trials: 6, Sources: 1, Addresses: 1},
		"cleared 6 times by paid calls from one network":               {Times: 6, Sources: 1, Addresses: 2},
		"cleared 6 times by 4 trial and 2 paid calls from 3 networks":  {Times: 6, Trials: 4, Sources: 3, Addresses: 5},
		"cleared 2 times by 1 trial and 1 paid calls from one address": {Times: 2, Trials: 1, Sources: 1, Addresses: 1},
	} {
		if got := c.Words(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
