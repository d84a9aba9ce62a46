package hostiletest

import (
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
)

// A report is what the rows came to.
type report struct {
	mu   sync.Mutex
	ends []verdict
}

// A verdict is what one row came to; the zero value is one that nobody played.
type verdict int

const (
	unplayed verdict = iota
	asTold
	otherwise
)

func newReport(rows int) *report { return &report{ends: make([]verdict, rows)} }

func (r *report) ended(i int, well bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends[i] = otherwise
	if well {
		r.ends[i] = asTold
	}
}

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

// text is the table of what was played.
func (r *report) text(rows []*played, m *memory, failed bool) string {
	var (
		b     strings.Builder
		count [otherwise + 1]int
		title string
	)
	b.WriteString("What a hostile service does, and how the call ends.\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, p := range rows {
		count[r.ends[i]]++
		if r.ends[i] == unplayed {
			continue
		}
		if p.title != title {
			title = p.title
			fmt.Fprintf(w, "\n%s\n\t%s\n", title, strings.Join(columns, "\t"))
		}
		line := strings.Join(p.want.cells(), "\t")
		if r.ends[i] == otherwise {
			line = "FAILED, want " + line
		}
		fmt.Fprintf(w, "%s\t%s\n", p.name, line)
	}
	_ = w.Flush() // into memory
	if failed && count[otherwise] == 0 {
		count[otherwise]++ // the memory, or the books as a whole
	}
	fmt.Fprintf(&b, "\n%s\n%d passed, %d failed\n", m, count[asTold], count[otherwise])
	return b.String()
}
