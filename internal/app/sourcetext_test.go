package app

import (
	"strings"
	"testing"
	"time"

	"market/internal/source"
)

func TestOutOf_AdvisesToRaiseAGuardOnlyWhereSomebodyCan(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for kind, want := range map[source.Kind]bool{source.KindFacilitator: true, source.KindRPC: true, source.KindMail: false, source.KindWebhook: false} {
		text := outOf(source.Source{Name: "x/y", Kind: kind}, source.Out{Why: source.Guarded, Until: midnight, Cap: 200}, "The rest goes on.", 1).Text()
		if got := strings.Contains(text, "guard.floor"); got != want || !strings.Contains(text, "The rest goes on.") || !strings.Contains(text, "2026-12-01 00:00:00 UTC") {
			t.Errorf("%s: %s", kind, text)
		}
	}
}

// Where only the services of the smallest plan are sent away, nothing says that all are.
func TestOutOf_OurGuardOfAFacilitatorSendsTheSmallestPlanAwayFirst(t *testing.T) {
	t.Parallel()
	for ranks, want := range map[int]string{1: "we have stopped using it for today",
		3: "we have begun to refuse payments through it for today, those for services of the smallest plan first"} {
		told := outOf(source.Source{Name: "facilitator/hosted", Kind: source.KindFacilitator}, source.Out{Why: source.Guarded, Cap: 600}, "The rest goes on.", ranks)
		if !strings.HasPrefix(told.What, "facilitator hosted: our own guard is reached at 600 units. ") || !strings.HasSuffix(told.What, ", so "+want) {
			t.Errorf("%d ranks: %q, want %q", ranks, told.What, want)
		}
	}
}
