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
		text := outOf(source.Source{Name: "x/y", Kind: kind}, source.Out{Why: source.Guarded, Until: midnight, Cap: 200}, "The rest goes on.").Text()
		if got := strings.Contains(text, "guard.floor"); got != want || !strings.Contains(text, "The rest goes on.") || !strings.Contains(text, "2026-12-01 00:00:00 UTC") {
			t.Errorf("%s: %s", kind, text)
		}
	}
}
