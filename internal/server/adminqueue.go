package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/strikes"
)

var adminStrikesTemplate = adminTemplate("strikes")

// A strikesPage is the check before delistings: every service that carries a strike, those first whose evidence rests on few.
type strikesPage struct {
	frame
	Rules       string // when a service leaves the shelf, in words
	Total       string
	Rows        []queueRow
	First, Next string // addresses of pages; empty where there is none
	Paged       bool
}

// A queueRow is what the strikes of one service rest on, and what comes next.
type queueRow struct {
	Slug, Name   string
	State        badge
	Count        string
	Concentrated bool
	Words        string
	Facts        []fact
	NextFailure  string
	Clears       string // by whom what failed was cleared, within Within; empty: by nobody
	Within       string
	Appeals      string // how many are not answered; empty: none
}

// strikesShown is how many services stand on one page of the queue.
const strikesShown = 50

// adminStrikes serves GET /admin/strikes. The queue moves while it is read, so its pages are counted and not cut at a service.
func (s *Server) adminStrikes(c echo.Context) error {
	from := 0
	if text := c.QueryParam("from"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return badParameter("from", "is no place in this list")
		}
		from = n
	}
	ctx := c.Request().Context()
	queue, err := s.path.Recorder.StrikesOfAll(ctx, from, strikesShown)
	if err != nil {
		return err
	}
	waiting, err := delivery.WhoWaits(ctx, s.db)
	if err != nil {
		return err
	}
	page := strikesPage{frame: s.adminFrame(c, "strikes"), Rules: shelfRules(s.path.Recorder.Policy()), First: "/admin/strikes", Paged: from > 0,
		Total: plural(queue.Total, "service carries a strike", "services carry strikes")}
	for _, sum := range queue.Services {
		row := s.queueRowOf(sum)
		if n := waitingOf(waiting, sum.Service); n > 0 {
			row.Appeals = plural(n, "appeal waits", "appeals wait")
		}
		page.Rows = append(page.Rows, row)
	}
	if next := from + len(queue.Services); next < queue.Total && len(queue.Services) > 0 {
		page.Next = "/admin/strikes?from=" + strconv.Itoa(next)
	}
	return s.writePage(c, http.StatusOK, adminStrikesTemplate, page)
}

func waitingOf(waiting []delivery.AppealsWaiting, service uuid.UUID) int {
	for _, w := range waiting {
		if w.Service == service {
			return w.N
		}
	}
	return 0
}

func (s *Server) queueRowOf(sum strikes.Summary) queueRow {
	return queueRow{
		Slug: sum.Slug, Name: plain(sum.Name), State: badgeOf(catalog.State(sum.State), s.rest(sum.Service), false, false),
		Count: fmt.Sprintf("%d of %d", sum.Open, sum.Policy.Limit), Concentrated: sum.Concentrated, Words: upperFirst(sum.Words),
		Facts: spreadFacts(sum.Spread), NextFailure: upperFirst(sum.Next) + ".", Clears: upperFirst(sum.ClearedWords), Within: span(sum.Policy.Window),
	}
}

// spreadFacts says over whom evidence is spread.
func spreadFacts(s strikes.Spread) []fact {
	if s.Evidence == 0 {
		return nil
	}
	facts := []fact{
		{Name: "Failed calls", Value: count(s.Evidence) + trialsAmong(s.Trials, s.Evidence) + ", over " + roughly(s.Span()) + ", the last at " + humanTime(s.Last)},
		{Name: "Networks", Value: spreadOver(s.Sources, s.FromLargest, s.Evidence, s.SourceShare(), "from "+s.LargestSource.String())},
	}
	if s.Payers == 0 {
		return append(facts, fact{Name: "Payers", Value: "none"})
	}
	return append(facts, fact{Name: "Payers", Value: spreadOver(s.Payers, s.ByLargest, s.Evidence, s.PayerShare(), "by "+s.LargestPayer.Hex())})
}

// spreadOver says how many there are, and what comes of the largest of them.
func spreadOver(n, largest, whole int, share float64, of string) string {
	return fmt.Sprintf("%s; %s of %s (%s) %s", count(n), count(largest), count(whole), percent(share), of)
}

func trialsAmong(trials, all int) string {
	switch trials {
	case 0:
		return ", all paid"
	case all:
		return ", all trial calls"
	}
	return ", " + count(trials) + " of them trial calls"
}

// roughly is a long span for people, who compare it: no shorter unit than it deserves.
func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return "one moment"
	case d.Round(time.Second) < 2*time.Minute:
		return span(d.Round(time.Second))
	case d.Round(time.Minute) < 2*time.Hour:
		return span(d.Round(time.Minute))
	}
	return span(d.Round(time.Hour))
}

// shelfRules says when a service leaves the shelf for its strikes.
func shelfRules(p strikes.Policy) string {
	text := fmt.Sprintf("%s that opened within %s take a service off the shelf. A success clears what failed before it was asked.", plural(p.Limit, "strike", "strikes"), span(p.Window))
	if p.Sources > 1 {
		text += fmt.Sprintf(" With evidence from fewer than %d networks it is held for a review instead.", p.Sources)
	}
	return text + " No service comes back by itself."
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// brief is a stranger's text in one line, cut where it is long for a page.
func brief(s string, runes int) string {
	if cut := []rune(s); len(cut) > runes {
		s = string(cut[:runes]) + "…"
	}
	return plain(s)
}

// linesOf is a stranger's text by line.
func linesOf(s string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		lines = append(lines, plain(line))
	}
	return lines
}

// humanTime is a time for people inside a sentence.
func humanTime(t time.Time) string {
	if at := momentOf(t); at != nil {
		return at.Human
	}
	return "an unknown time"
}
