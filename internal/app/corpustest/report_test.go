package corpustest

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

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

// text is the table of what was played. failed says that something went wrong, a row or not.
func text(rows []*played, tally *apptest.Tally, failed bool) string {
	var (
		b     strings.Builder
		title string
	)
	b.WriteString("What happens to calls, and what becomes of them.\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, p := range rows {
		if tally.At(i) == apptest.Unrun {
			continue
		}
		if p.title != title {
			title = p.title
			fmt.Fprintf(w, "\n%s\n\t%s\n", title, strings.Join(columns, "\t"))
		}
		line := strings.Join(p.want.cells(), "\t")
		if tally.At(i) == apptest.Otherwise {
			line = "FAILED, want " + line
		}
		fmt.Fprintf(w, "%s\t%s\n", p.name, line)
	}
	_ = w.Flush() // into memory
	return b.String() + "\n" + tally.Line(failed)
}
