package source

import (
	"math"
	"testing"
)

func TestCap_FollowsTheBusiestDayAndNeverFallsBelowTheFloor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		guard   Guard
		busiest int64
		want    int64
	}{
		"no floor is no cap": {Guard{SurgePercent: 300}, 1000, math.MaxInt64},
		"nothing known":      {Guard{5000, 300}, 0, 5000},
		"three times the busiest is below the floor": {Guard{5000, 300}, 1666, 5000},
		"the first day that lifts it":                {Guard{5000, 300}, 1667, 5001},
		"well above the floor":                       {Guard{5000, 300}, 5000, 15000},
		"half a unit is rounded up":                  {Guard{1, 150}, 3, 5},
		"a whole number is not":                      {Guard{1, 150}, 4, 6},
		"a hundredth is rounded up":                  {Guard{1, 101}, 1, 2},
		"without a surge the floor alone":            {Guard{Floor: 5000}, 1_000_000, 5000},
		"a surge of one lets a day like the busiest": {Guard{10, 100}, 5000, 5000},
		"the largest that fits":                      {Guard{1, 100}, math.MaxInt64 - 100, math.MaxInt64 - 100},
		"what does not fit is no cap":                {Guard{1, 300}, math.MaxInt64 / 2, math.MaxInt64},
	} {
		if got := Cap(tt.guard, tt.busiest); got != tt.want {
			t.Errorf("%s: Cap(%v, %d) = %d, want %d", name, tt.guard, tt.busiest, got, tt.want)
		}
	}
}

func TestCeiling_OfTheLastTenthRefundsComeFirstThenPayouts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		class   Class
		limit   int64
		waiting Waiting
		want    int64
	}{
		"a refund may use all":                           {Refund, 1000, Waiting{500, 500}, 1000},
		"nothing waits":                                  {Settlement, 1000, Waiting{}, 1000},
		"a settlement leaves what refunds want":          {Settlement, 1000, Waiting{Refunds: 1}, 999},
		"and what payouts want":                          {Settlement, 1000, Waiting{3, 4}, 993},
		"one less than a tenth":                          {Settlement, 1000, Waiting{Refunds: 99}, 901},
		"a tenth":                                        {Settlement, 1000, Waiting{Refunds: 100}, 900},
		"never more than a tenth":                        {Settlement, 1000, Waiting{Refunds: 101}, 900},
		"however many wait":                              {Settlement, 1000, Waiting{math.MaxInt64, math.MaxInt64}, 900},
		"a payout leaves what refunds want":              {Payout, 1000, Waiting{Refunds: 7, Payouts: 50}, 993},
		"and not what other payouts want":                {Payout, 1000, Waiting{Payouts: 50}, 1000},
		"what is for nobody's money is like settlements": {Other, 1000, Waiting{3, 4}, 993},
		"a tenth of nine is nothing":                     {Settlement, 9, Waiting{Refunds: 9}, 9},
		"a tenth of ten is one":                          {Settlement, 10, Waiting{Refunds: 9}, 9},
		"a count that went wrong":                        {Settlement, 1000, Waiting{-5, -5}, 1000},
	} {
		if got := Ceiling(tt.class, tt.limit, tt.waiting); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	for _, c := range Classes() {
		if got := Ceiling(c, 100, Waiting{}); got != 100 {
			t.Errorf("%s may use %d of 100 when nothing waits", c, got)
		}
	}
}

func TestEnumerations_HaveAWordEach(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	add := func(word string) {
		if word == "" || seen[word] {
			t.Errorf("the word %q is missing or there twice", word)
		}
		seen[word] = true
	}
	for k := KindFacilitator; k < kindEnd; k++ {
		add("kind " + k.String())
	}
	for r := Rate; r < runsOutEnd; r++ {
		add("runs out " + r.String())
	}
	for c := Refund; c < classEnd; c++ {
		add("class " + c.String())
	}
	for w := Guarded; w < whyEnd; w++ {
		add("why " + w.String())
		if whyOf(w.String()) != w {
			t.Errorf("%s is read back as %s", w, whyOf(w.String()))
		}
	}
	for r := Worked; r < resultEnd; r++ {
		add("result " + r.String())
	}
	for _, zero := range []string{Kind(0).String(), RunsOut(0).String(), Class(0).String(), Why(0).String(), Result(0).String()} {
		if zero != "invalid(0)" {
			t.Errorf("the zero value calls itself %q", zero)
		}
	}
}
