package corpustest

import (
	"cmp"
	"fmt"
	"strings"

	"market/internal/app/apptest"
)

var columns = []string{"outcome", "reason", "party", "caller gets", "strikes", "rest", "service", "money"}

// cells are what a row says, in the order of columns.
func (w want) cells() []string {
	or := func(text string) string { return cmp.Or(text, "–") }
	gets := "–"
	if w.status != 0 {
		gets = fmt.Sprint(w.status)
	}
	strikes := fmt.Sprint(w.strikes)
	if w.evidence > w.strikes {
		strikes += fmt.Sprintf(" of %d calls", w.evidence)
	}
	rests := "–"
	if w.rests > 0 {
		rests = strings.TrimSuffix(strings.TrimSuffix(w.rests.String(), "0s"), "m") + " min"
		if w.rests < rest {
			rests = w.rests.String()
		}
	}
	return []string{or(string(w.outcome)), string(w.reason), string(w.party), gets, strikes, rests, cmp.Or(w.state, listed), w.money()}
}

// money is what a row costs whoever pays in it.
func (w want) money() string {
	switch {
	case w.paid == 0:
		return "not charged"
	case w.paid == 1 && w.back == 0:
		return "charged"
	case w.paid == 1 && w.back == 1:
		return "refunded"
	case w.paid == w.back:
		return fmt.Sprintf("%d refunded", w.back)
	case w.back == 0:
		return fmt.Sprintf("%d charged", w.paid)
	}
	return fmt.Sprintf("%d charged, %d refunded", w.paid-w.back, w.back)
}

// sheet is the table of rows as people read it.
func sheet(rows []*played) apptest.Sheet {
	s := apptest.Sheet{Of: "corpus", First: "what happens", Columns: columns}
	for _, p := range rows {
		s.Lines = append(s.Lines, apptest.Line{Title: p.title, Name: p.name, Cells: p.want.cells()})
	}
	return s
}

// text is the table of what was played. failed says that something went wrong, a row or not.
func text(rows []*played, tally *apptest.Tally, failed bool) string {
	return "What happens to calls, and what becomes of them.\n" + sheet(rows).Text(tally) + "\n" + tally.Line(failed)
}
