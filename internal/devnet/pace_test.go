package devnet

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPace_MayMine_AtItsBoundaries(t *testing.T) {
	t.Parallel()
	const wall, burst = 1000, 30
	tests := map[string]struct {
		at   pace
		want bool
	}{
		"idle, a second behind":                      {pace{wall: wall, head: wall - 1, mined: wall - 1}, true},
		"idle, on wall time, mined this second":      {pace{wall: wall, head: wall, mined: wall}, false},
		"idle, a second ahead, mined this second":    {pace{wall: wall, head: wall + 1, mined: wall}, false},
		"idle and ahead, mined a second ago":         {pace{wall: wall, head: wall + 5, mined: wall - 1}, false},
		"idle and ahead, mined two seconds ago":      {pace{wall: wall, head: wall + 5, mined: wall - 2}, true},
		"idle and ahead, mined three seconds ago":    {pace{wall: wall, head: wall + 5, mined: wall - 3}, true},
		"waiting, the block would be a second below": {pace{wall: wall, head: wall + burst - 2, mined: wall, waiting: true}, true},
		"waiting, the block would be on the bound":   {pace{wall: wall, head: wall + burst - 1, mined: wall, waiting: true}, true},
		"waiting, the block would be past the bound": {pace{wall: wall, head: wall + burst, mined: wall, waiting: true}, false},
		"idle for long and on the bound":             {pace{wall: wall, head: wall + burst, mined: wall - 100}, false},
		"waiting, far behind after a pause":          {pace{wall: wall, head: 1, mined: 1, waiting: true}, true},
	}
	for name, tt := range tests {
		if got := tt.at.mayMine(burst); got != tt.want {
			t.Errorf("%s: may mine = %t, want %t", name, got, tt.want)
		}
	}
}

func TestPace_MayMine_WithoutBurstIsOneBlockASecond(t *testing.T) {
	t.Parallel()
	for head, want := range map[uint64]bool{999: true, 1000: false, 1001: false} {
		if got := (pace{wall: 1000, head: head, mined: 1, waiting: true}).mayMine(0); got != want {
			t.Errorf("head at %d, wall at 1000: may mine = %t, want %t", head, got, want)
		}
	}
}

// The test plays the miner over seconds in which transactions come or do not, asking the pace many times in each.
func TestPace_MayMine_KeepsTheBoundAndNeverStandsStill(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.Uint64Range(0, 40).Draw(t, "burst")
		p := pace{wall: 1000, head: 990, mined: 990}
		for _, askedFor := range rapid.SliceOfN(rapid.IntRange(0, 60), 1, 60).Draw(t, "blocks asked for in each second") {
			p.wall++
			for range 100 {
				p.waiting = askedFor > 0
				if !p.mayMine(burst) {
					break
				}
				p.head, p.mined = max(p.wall, p.head+1), p.wall
				askedFor--
				if p.head > p.wall+burst {
					t.Fatalf("the head is %d ahead, burst is %d", p.head-p.wall, burst)
				}
			}
			if p.wall-p.mined >= idleRest {
				t.Fatalf("no block for %d seconds", p.wall-p.mined)
			}
			if p.head < p.wall {
				t.Fatalf("the head is %d behind at the end of a second", p.wall-p.head)
			}
		}
	})
}

func TestPace_MayMine_LeadMeltsWhileIdle(t *testing.T) {
	t.Parallel()
	const lead = 30
	p := pace{wall: 1000, head: 1000 + lead, mined: 1000}
	for range idleRest * lead {
		p.wall++
		if p.mayMine(lead) {
			p.head, p.mined = max(p.wall, p.head+1), p.wall
		}
	}
	if p.head != p.wall {
		t.Errorf("after %d idle seconds the head is %d ahead, want 0", idleRest*lead, p.head-p.wall)
	}
}
