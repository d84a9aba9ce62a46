package simtest

import (
	"testing"
	"time"

	"market/internal/outage"
)

// seenAt is an outage of the fleet that was seen at one time, excuses from another on, and ended at a third; 0: it holds.
func seenAt(began, reaches, ended time.Duration) *trip {
	t := &trip{replica: fleet, state: outage.State{Cause: outage.Services, Began: moment(began), Reaches: moment(reaches)}}
	if ended > 0 {
		t.state.Ended = moment(ended)
	}
	return t
}

func TestJudge_AnOutageExcusesFromThreeMinutesBeforeItIsSeenUntilItIsOverAndNoMore(t *testing.T) {
	t.Parallel()
	const hour, m = time.Hour, time.Minute
	bySight := []blackout{{from: hour, to: hour + 5*m, replica: fleet}}
	long := []blackout{{from: hour, to: hour + 10*m, replica: fleet}}
	sounded := []blackout{{from: hour, to: hour + 10*m, replica: fleet, canaries: true}}
	for name, tt := range map[string]struct {
		outages []blackout
		seen    *trip
		now     time.Duration
		right   bool
	}{
		"from three minutes before":            {bySight, seenAt(hour+m, hour-2*m, hour+7*m), 2 * hour, true},
		"from an hour before":                  {bySight, seenAt(hour+m, m, hour+7*m), 2 * hour, false},
		"from just over three minutes before":  {bySight, seenAt(hour+m, hour-2*m-1, hour+7*m), 2 * hour, false},
		"where there is none":                  {bySight, seenAt(2*hour, 2*hour, 2*hour+m), 3 * hour, false},
		"before there is one":                  {bySight, seenAt(hour-m, hour-m, hour+m), 2 * hour, false},
		"on and on":                            {bySight, seenAt(hour+m, hour, 0), 2 * hour, false},
		"while it lasts":                       {bySight, seenAt(hour+m, hour, 0), hour + 4*m, true},
		"an end that comes late":               {bySight, seenAt(hour+m, hour, hour+9*m), 2 * hour, false},
		"services alone, for ten minutes":      {long, seenAt(hour+m, hour, hour+11*m), 2 * hour, true},
		"services alone, for twelve":           {long, seenAt(hour+m, hour, hour+13*m), 2 * hour, false},
		"what the canaries see has no maximum": {sounded, seenAt(hour+m, hour, hour+13*m), 2 * hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := wrongBeginning(tt.seen, tt.outages) + wrongEnd(tt.seen, tt.outages, tt.now)
			if right := wrong == ""; right != tt.right {
				t.Errorf("right is %v, want %v: %q", right, tt.right, wrong)
			}
		})
	}
}

func TestJudge_AnOutageThatLooksLikeFiveServicesMustBeSeen(t *testing.T) {
	t.Parallel()
	outages := []blackout{{from: time.Hour, to: time.Hour + 5*time.Minute, replica: fleet}}
	providerOf := []int{0, 0, 0, 1, 2}
	for name, tt := range map[string]struct {
		services int
		after    time.Duration // the beginning of the outage
		plain    bool
	}{
		"five services of three providers": {5, 2 * time.Minute, true},
		"four":                             {4, 2 * time.Minute, false},
		"while others may have been served just before":       {5, time.Minute, false},
		"when it is over, so that others may be served again": {5, 6 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatterns(providerOf)
			for service := range tt.services {
				p.see(end{service: service, caller: ordinary, at: time.Minute, truth: delivered}, outages)
			}
			for service := range tt.services {
				p.see(end{service: service, caller: ordinary, at: time.Hour + tt.after, truth: ours, reason: "upstream_timeout", outage: 1}, outages)
			}
			if p.plain[0] != tt.plain {
				t.Fatalf("plain is %v, want %v", p.plain[0], tt.plain)
			}
			if n := len(missed(p.plain, nil, outages)); (n > 0) != tt.plain {
				t.Errorf("%d outages are missed that nobody has seen", n)
			}
			if n := len(missed(p.plain, []*trip{seenAt(time.Hour+time.Minute, time.Hour, 0)}, outages)); n > 0 {
				t.Errorf("%d outages are missed, and it was seen", n)
			}
		})
	}
}
