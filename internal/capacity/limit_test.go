package capacity

import (
	"testing"
	"time"
)

func TestParseRate_TakesTenthsWithinItsBounds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{
		"0.1": 1, "0.9": 9, "1": 10, "1.0": 10, "2.5": 25, "50": 500, "9999.9": 99_999, "10000": 100_000, "10000.0": 100_000,
		"0": 0, "0.0": 0, "0.05": 0, "10000.1": 0, "10001": 0, "99999": 0, "100000": 0, "-1": 0, "+1": 0, "1e2": 0, "1.": 0, ".5": 0, "1.25": 0, "": 0, "x": 0, "1\n": 0,
	} {
		got, err := ParseRate(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("ParseRate(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestRate_IsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	for _, r := range []Rate{RateMin, 9, 10, 11, 500, 99_999, RateMax} {
		if got, err := ParseRate(r.String()); err != nil || got != r {
			t.Errorf("%d is written %q and read as %d, %v", r, r, got, err)
		}
	}
}

func TestRate_Pace_IsNeverFasterThanTheRateOfAllReplicasTogether(t *testing.T) {
	t.Parallel()
	for _, r := range []Rate{1, 3, 7, 10, 99, 30_000, RateMax} {
		for _, replicas := range []int{1, 2, 3, 7, 1000} {
			pace := r.pace(replicas)
			if exact := 10 * time.Second * time.Duration(replicas); pace*time.Duration(r) < exact || (pace-1)*time.Duration(r) >= exact {
				t.Errorf("%s a second over %d replicas: one in %v", r, replicas, pace)
			}
		}
	}
}
