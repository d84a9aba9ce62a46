package delivery

import (
	"testing"
	"time"
)

func TestRefundPolicy_RestsUntil(t *testing.T) {
	t.Parallel()
	policy := RefundPolicy{Count: 5, Window: 10 * time.Minute}
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	at := func(minutes ...float64) []ending {
		var out []ending
		for _, m := range minutes {
			out = append(out, ending{at: start.Add(time.Duration(m * float64(time.Minute)))})
		}
		return out
	}
	served := func(endings []ending, n int) []ending {
		out := make([]ending, 0, len(endings)+n)
		for range n {
			out = append(out, ending{at: start, served: true})
		}
		return append(out, endings...)
	}
	never := time.Time{}
	for name, tt := range map[string]struct {
		endings []ending
		want    time.Time
	}{
		"one below the count is free":                    {at(0, 1, 2, 3), never},
		"the count starts a rest of the window":          {at(0, 1, 2, 3, 4), start.Add(14 * time.Minute)},
		"the first just inside the window counts":        {at(0, 7, 8, 9, 10), start.Add(20 * time.Minute)},
		"the first just outside the window does not":     {at(0, 7, 8, 9, 10.001), never},
		"as many served as refunded is a good customer":  {served(at(0, 1, 2, 3, 4), 5), never},
		"one served fewer is not":                        {served(at(0, 1, 2, 3, 4), 4), start.Add(14 * time.Minute)},
		"calls under way when a rest began do not add":   {at(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), start.Add(10 * time.Minute)},
		"the offence after a rest doubles it":            {at(0, 0, 0, 0, 0, 10, 10, 10, 10, 10), start.Add(30 * time.Minute)},
		"a rest that has passed counts as one no longer": {at(0, 0, 0, 0, 0, 100), start.Add(10 * time.Minute)},
		"an empty history":                               {nil, never},
	} {
		if got := policy.restsUntil(tt.endings); !got.Equal(tt.want) {
			t.Errorf("%s: rests until %v, want %v", name, got, tt.want)
		}
	}
}

func TestRefundPolicy_RestsUntil_DoublesUpToADay(t *testing.T) {
	t.Parallel()
	policy := RefundPolicy{Count: 1, Window: time.Hour}
	start := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	var endings []ending
	at, want := start, []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour, 24 * time.Hour, 24 * time.Hour}
	for _, rest := range want {
		endings = append(endings, ending{at: at})
		if got := policy.restsUntil(endings); !got.Equal(at.Add(rest)) {
			t.Fatalf("after %d offences the rest is %s, want %s", len(endings), got.Sub(at), rest)
		}
		at = at.Add(rest)
	}
}
