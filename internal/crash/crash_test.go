package crash_test

import (
	"slices"
	"testing"

	"market/internal/call"
	"market/internal/crash"
)

func TestPoints_EveryMoveHasOneBeforeAndOneAfter(t *testing.T) {
	t.Parallel()
	points := crash.Points()
	for _, m := range call.Moves() {
		for _, side := range []string{"before", "after"} {
			want := crash.Point(side + ":" + string(m.From) + "->" + string(m.To))
			if !slices.Contains(points, want) {
				t.Errorf("there is no point %s", want)
			}
		}
	}
}

func TestPoints_EachIsThereOnce(t *testing.T) {
	t.Parallel()
	points := crash.Points()
	slices.Sort(points)
	if n := len(slices.Compact(slices.Clone(points))); n != len(points) {
		t.Errorf("%d points have %d names", len(points), n)
	}
	if crash.Known("") || crash.Known("before:claims") || !crash.Known("before:claim") {
		t.Error("a name that is none is known, or one that is one is not")
	}
}
