package crashtest

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"market/internal/app/apptest"
)

const heading = `How a call ends whose server was killed at a point and started again, as transfers in/transfers out/requests to the service.
`

// text is the matrix: a line a point, a column for each caller and each service.
func text(all []kase, tally *apptest.Tally) string {
	var (
		b     strings.Builder
		lines int
	)
	b.WriteString(heading)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for first := 0; first < len(all); first += len(columns) {
		line := []string{string(all[first].point)}
		ran := false
		for i := range columns {
			c := tally.At(first + i)
			ran = ran || c != apptest.Unrun
			line = append(line, map[apptest.End]string{apptest.Unrun: "-", apptest.AsTold: all[first+i].want().String(), apptest.Otherwise: "FAILED"}[c])
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
	b.WriteString(tally.Line(false))
	return b.String()
}

func columnNames() []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.String())
	}
	return names
}
