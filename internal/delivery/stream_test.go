package delivery

import (
	"testing"
	"time"
)

func TestPace_OnlyACallerThatReadsTooSlowlyForTooLongIsLeft(t *testing.T) {
	t.Parallel()
	const second = time.Second
	type step struct {
		took  time.Duration
		bytes int
	}
	repeat := func(n int, s step) (all []step) {
		for range n {
			all = append(all, s)
		}
		return all
	}
	for name, tt := range map[string]struct {
		steps []step
		left  bool
	}{
		"nothing taken for just under 30 s":            {[]step{{30*second - 1, 0}}, false},
		"nothing taken for 30 s":                       {[]step{{30 * second, 0}}, true},
		"a little, too slowly, for long":               {repeat(61, step{second, 512}), true},
		"a little, too slowly, for a while":            {repeat(59, step{second, 512}), false},
		"just as fast as asked, for minutes":           {repeat(299, step{second, 1024}), false},
		"fast at first, which buys no rest":            {append(repeat(100, step{second, 1 << 20}), step{30 * second, 0}), true},
		"slow, then fast: it caught up":                {[]step{{29 * second, 0}, {second, 64 << 10}, {29 * second, 0}}, false},
		"fast enough, and held up for too long in all": {repeat(300, step{second, 1 << 20}), true},
		"never in the way":                             {repeat(10_000, step{0, 1}), false},
	} {
		var p pace
		limits := StreamLimits{}.orDefault()
		for _, s := range tt.steps {
			p = p.after(limits, s.took, s.bytes)
		}
		if got := p.limit(limits, 0) <= 0; got != tt.left {
			t.Errorf("%s: left %v, with %v to go; want %v", name, got, p.limit(limits, 0), tt.left)
		}
	}
}

func TestPace_APieceMayTakeAsLongAsTheSlowestReaderTakesForIt(t *testing.T) {
	t.Parallel()
	limits := StreamLimits{}.orDefault()
	var p pace
	if got, want := p.limit(limits, 8<<10), 38*time.Second; got != want {
		t.Errorf("the first 8 KiB may take %v, want %v", got, want)
	}
	p = p.after(limits, 38*time.Second, 8<<10)
	if got, want := p.limit(limits, 8<<10), 8*time.Second; got != want {
		t.Errorf("the next 8 KiB may take %v, want %v", got, want)
	}
}

// A cut description must not lose what says that the answer cannot be had again.
func TestDescribe_AStreamSaysFirstThatItIsNotKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		description string
		stream      bool
		want        string
	}{
		"no stream":                   {"Prices", false, "Prices"},
		"a stream":                    {"Prices", true, "Streamed, not kept: it cannot be fetched again. Prices"},
		"a stream without more words": {"", true, "Streamed, not kept: it cannot be fetched again."},
	} {
		if got := describe(tt.description, tt.stream); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
