package crashtest

import (
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
)

// A report is what the matrix came to.
type report struct {
	mu    sync.Mutex
	cells []cell
}

// A cell is what one case came to; the zero value is one that nobody ran.
type cell int

const (
	unrun cell = iota
	asTold
	otherwise
)

func newReport(cases int) *report { return &report{cells: make([]cell, cases)} }

func (r *report) ended(i int, well bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cells[i] = otherwise
	if well {
		r.cells[i] = asTold
	}
}

func (r *report) at(i int) cell {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cells[i]
}

const heading = `How a call ends whose server was killed at a point and started again, as transfers in/transfers out/requests to the service.
`

// text is the matrix: a line a point, a column for each caller and each service.
func (r *report) text(all []kase) string {
	var (
		b     strings.Builder
		count [otherwise + 1]int
		lines int
	)
	b.WriteString(heading)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for first := 0; first < len(all); first += len(columns) {
		line := []string{string(all[first].point)}
		ran := false
		for i := range columns {
			c := r.at(first + i)
			count[c]++
			ran = ran || c != unrun
			line = append(line, map[cell]string{unrun: "-", asTold: all[first+i].want().String(), otherwise: "FAILED"}[c])
		}
		if !ran {
			continue
		}
		if lines++; lines == 1 {
			fmt.Fprintln(w, "killed at\t"+strings.Join(columnNames(), "\t"))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(&b, "%d passed, %d failed\n", count[asTold], count[otherwise])
	return b.String()
}

func columnNames() []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.String())
	}
	return names
}
