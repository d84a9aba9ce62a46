package server

import (
	"strings"
	"testing"

	"market/internal/catalog"
	"market/internal/strikes"
)

// What was cleared is read as far back as strikes count. Before that a success may have cleared anything.
func TestClears_AreSaidOfTheWindowAndNotOfEver(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	row := s.queueRowOf(testPolicy().Summarize(strikes.Facts{Slug: "calm", Name: "Calm", State: string(catalog.Listed), Sells: true, Open: 1, Spread: strangersSpread()}))
	for name, page := range map[string]string{
		"queue":       render(t, adminStrikesTemplate, strikesPage{frame: s.frame(), Rows: []queueRow{row}}),
		"one service": render(t, adminStrikeTemplate, casePage{frame: s.frame(), Slug: "calm", Summary: &row}),
	} {
		if !strings.Contains(page, "Cleared within 24 hours<") || !strings.Contains(page, ">not within 24 hours<") || strings.Contains(page, "never") || strings.Contains(page, "Cleared before") {
			t.Errorf("%s does not say within what it was not cleared:\n%s", name, page)
		}
	}
}
