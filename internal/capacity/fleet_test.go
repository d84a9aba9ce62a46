package capacity

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestFleet_OneThatComesWaitsUntilTheOthersHaveSeenIt(t *testing.T) {
	t.Parallel()
	both := ids(2)
	f := fleet{aliveFor: 3 * time.Second}
	if f.sharing(both[0], start) {
		t.Error("it shares before it was seen by anybody")
	}
	for at := time.Duration(0); at <= 3*time.Second; at += time.Second {
		f = f.next(both[0], both, start.Add(at), start.Add(at))
	}
	for at, want := range map[time.Duration]bool{3*time.Second - 1: false, 3 * time.Second: true, 3*time.Second + 1: true} {
		if got := f.sharing(both[0], start.Add(at)); got != want {
			t.Errorf("%v after it came: sharing = %v, want %v", at, got, want)
		}
	}
}

func TestFleet_OneThatIsAloneWaitsForNobodyAndDoesNotGoOnUnseen(t *testing.T) {
	t.Parallel()
	one := ids(1)
	f := fleet{aliveFor: 3 * time.Second}.next(one[0], one, start, start)
	for at, want := range map[time.Duration]bool{0: true, 3 * time.Second: true, 3*time.Second + 1: false, time.Hour: false} {
		if got := f.sharing(one[0], start.Add(at)); got != want {
			t.Errorf("%v after it came: sharing = %v, want %v", at, got, want)
		}
	}
}

func TestFleet_OneThatWasNotSeenForTooLongUsesNothingAndComesAnew(t *testing.T) {
	t.Parallel()
	both := ids(2)
	settled := fleet{members: both, seen: start, joined: start.Add(-time.Hour), aliveFor: 3 * time.Second}
	for at, want := range map[time.Duration]bool{3*time.Second - 1: true, 3 * time.Second: true, 3*time.Second + 1: false} {
		if got := settled.sharing(both[0], start.Add(at)); got != want {
			t.Errorf("%v after its heartbeat: sharing = %v, want %v", at, got, want)
		}
	}
	if !settled.next(both[0], both, start.Add(2*time.Second), start.Add(3*time.Second)).sharing(both[0], start.Add(3*time.Second)) {
		t.Error("it was seen again in time, and does not share")
	}
	back := start.Add(3*time.Second + 1)
	late := settled.next(both[0], both, back, back)
	for at := time.Second; at <= 3*time.Second; at += time.Second {
		late = late.next(both[0], both, back.Add(at), back.Add(at))
	}
	for at, want := range map[time.Duration]bool{3*time.Second - 1: false, 3 * time.Second: true} {
		if got := late.sharing(both[0], back.Add(at)); got != want {
			t.Errorf("%v after it came back: sharing = %v, want %v", at, got, want)
		}
	}
}

func TestFleet_OneWhoseRowIsGoneUsesNothing(t *testing.T) {
	t.Parallel()
	all := ids(3)
	f := fleet{members: all, seen: start, aliveFor: 3 * time.Second}.next(all[0], all[1:], start, start)
	if f.sharing(all[0], start) {
		t.Error("it shares, and nobody counts it")
	}
}

// Whatever replicas come, go and stall: at no moment do their shares sum to more than was declared. Each beats at moments of its own, and what it
// reads is what is in the table then.
func TestFleet_SharesNeverOverlapWhileReplicasComeAndGo(t *testing.T) {
	t.Parallel()
	const (
		aliveFor = 3 * time.Second
		tick     = 100 * time.Millisecond
		places   = 5
	)
	type replica struct {
		fleet
		id      uuid.UUID
		running bool
		until   time.Time // it stalls
	}
	members := ids(4)
	service := uuid.New()
	replicas := make([]*replica, len(members))
	for i, id := range members {
		replicas[i] = &replica{id: id, fleet: fleet{aliveFor: aliveFor}}
	}
	beats := map[uuid.UUID]time.Time{}
	// A script with stalls below, at and above aliveFor, a crash and a restart, of different replicas at once.
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	served := 0
	for now := start; now.Before(at(90)); now = now.Add(tick) {
		step := int(now.Sub(start) / tick)
		switch step {
		case 0, 5, 12, 100:
			replicas[slices.Index([]int{0, 5, 12, 100}, step)].running = true
		case 180:
			replicas[0].until = at(18 + 2.9)
			replicas[1].until = at(18 + 3.5)
		case 260:
			replicas[2].until = at(26 + 20) // dead to the others for long
		case 300:
			replicas[3].running = false
			replicas[3].fleet = fleet{aliveFor: aliveFor} // killed; its row stays
		case 310:
			replicas[3].running = true
		case 500: // one is left alone, and stalls while another comes
			for _, r := range replicas[1:] {
				r.running, r.fleet = false, fleet{aliveFor: aliveFor}
			}
		case 560:
			replicas[0].until = at(56 + 20)
		case 570:
			replicas[1].running = true
		}
		for i, r := range replicas {
			if !r.running || now.Before(r.until) || (step+3*i)%10 != 0 {
				continue
			}
			beats[r.id] = now
			var alive []uuid.UUID
			for id, beat := range beats {
				if now.Sub(beat) < aliveFor {
					alive = append(alive, id)
				}
			}
			r.fleet = r.next(r.id, alive, now, now)
		}
		sum := 0
		for _, r := range replicas {
			if r.running && r.sharing(r.id, now) {
				sum += placesOf(places, service, r.id, r.members)
			}
		}
		if sum > places {
			t.Fatalf("%v after the start %d places are used, of %d", now.Sub(start), sum, places)
		}
		served += sum
	}
	if all := places * 900; served < all/2 {
		t.Errorf("%d of %d place-ticks were used", served, all)
	}
}
