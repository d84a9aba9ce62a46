package hostiletest

import (
	"fmt"
	"strings"
	"text/tabwriter"

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

// text is the table of what was played. failed says that something went wrong, a row or not: the memory, or the books as a whole.
func text(rows []*played, tally *apptest.Tally, m *memory, failed bool) string {
	var (
		b     strings.Builder
		title string
	)
	b.WriteString("What a hostile service does, and how the call ends.\n")
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
	fmt.Fprintf(&b, "\n%s\n%s", m, tally.Line(failed))
	return b.String()
}
