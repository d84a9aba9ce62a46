package hostiletest

import (
	"fmt"
	"strings"

	"market/internal/app/apptest"
)

var columns = []string{"outcome", "reason", "party", "caller gets", "cost", "strike", "rest"}

// cells are what a row says, in the order of columns.
func (w want) cells() []string {
	strike := "–"
	if w.strike {
		strike = "+1"
	}
	rests := "–"
	if w.rests > 0 {
		rests = w.rests.String()
		rests = strings.TrimSuffix(strings.TrimSuffix(rests, "0s"), "m") + " min"
	}
	gets := fmt.Sprint(w.status)
	if w.breaks {
		gets += ", broken off"
	}
	return []string{string(w.outcome), string(w.reason), string(w.party), gets, string(w.cost), strike, rests}
}

// sheet is the table of rows as people read it.
func sheet(rows []*played) apptest.Sheet {
	s := apptest.Sheet{Of: "hostile", First: "the service", Columns: columns}
	for _, p := range rows {
		s.Lines = append(s.Lines, apptest.Line{Title: p.title, Name: p.name, Cells: p.want.cells()})
	}
	return s
}

// text is the table of what was played. failed says that something went wrong, a row or not: the memory, or the books as a whole.
func text(rows []*played, tally *apptest.Tally, m *memory, failed bool) string {
	return fmt.Sprintf("What a hostile service does, and how the call ends.\n%s\n%s\n%s", sheet(rows).Text(tally), m, tally.Line(failed))
}
