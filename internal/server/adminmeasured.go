package server

import (
	"fmt"
	"time"

	"market/internal/delivery"
)

// measuredOnPageOf shows what was measured of a service; nil where it could not be read.
func measuredOnPageOf(measured []delivery.Measured, at time.Time) *measuredOnPage {
	if at.IsZero() {
		return nil
	}
	page := &measuredOnPage{Means: whatMeasured + " As of " + humanTime(at) + "."}
	for i, m := range measured {
		w := measuredWindow{Name: windowName(m.Window), Open: i == 0}
		all := 0
		for _, t := range m.Traffic {
			all += t.N()
			w.Rows = append(w.Rows, trafficRows("", t)...)
		}
		for _, e := range m.Endpoints {
			for _, t := range e.Traffic {
				w.Rows = append(w.Rows, trafficRows(e.Method+" "+brief(e.Path, 100)+": ", t)...)
			}
		}
		w.N = plural(all, "call", "calls")
		page.Windows = append(page.Windows, w)
	}
	return page
}

func windowName(d time.Duration) string {
	if d == 24*time.Hour {
		return "24 hours"
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// classNames say whose calls are counted.
var classNames = map[delivery.Class]string{
	delivery.ClassCounting: "from outside",
	delivery.ClassOwn:      "of the market's own",
	delivery.ClassProvider: "of its provider",
}

// trafficRows is one kind of calls, and how they ended.
func trafficRows(of string, t delivery.Traffic) []measuredRow {
	kind := "paid calls "
	if t.Trial {
		kind = "trial calls "
	}
	head := measuredRow{Name: of + kind + classNames[t.Class], N: count(t.N()), Head: true}
	if of == "" {
		head.Name = upperFirst(head.Name)
	}
	head.Latency = latencyWords("served", t.Served) + latencyWords("failed", t.Failed)
	if !t.Since.IsZero() {
		head.Latency += "There are more: all are counted since " + humanTime(t.Since) + "."
	}
	rows := []measuredRow{head}
	for _, c := range t.Counts {
		rows = append(rows, measuredRow{Name: fmt.Sprintf("%s, %s: %s", c.Outcome, c.Party, c.Reason), N: count(c.N)})
	}
	return rows
}

func latencyWords(of string, l delivery.Latency) string {
	if l.N == 0 {
		return ""
	}
	return fmt.Sprintf("Of %s %s half took up to %s, 99 %% up to %s. ", count(l.N), of, span(l.P50), span(l.P99))
}
