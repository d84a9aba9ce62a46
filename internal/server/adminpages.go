package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/notify"
)

var (
	adminHomeTemplate     = adminTemplate("home")
	adminServicesTemplate = adminTemplate("services")
)

// forAdmins says whether an address is one of the admin's pages.
func forAdmins(c echo.Context) bool {
	at := c.Request().URL.Path
	return at == adminHome || strings.HasPrefix(at, adminHome+"/")
}

// A overviewPage is where an admin begins: what there is to look at, by number.
type overviewPage struct {
	frame
	Out     []string // what we depend on and cannot use now, and what that stops
	Counts  []overviewCount
	Waiting []waitingOnPage
}

// A waitingOnPage is a service of which appeals wait for an answer.
type waitingOnPage struct {
	Slug, Name, N string
	State         badge
	Oldest        *moment
}

// An overviewCount is how much there is of something. Urgent: somebody waits for the admin.
type overviewCount struct {
	N                string
	What, Link, Note string
	Urgent           bool
	Bad              bool // something stopped
}

func (s *Server) adminOverview(c echo.Context) error {
	ctx := c.Request().Context()
	states, err := s.store.CountStates(ctx, s.db)
	if err != nil {
		return err
	}
	queue, err := s.path.Recorder.StrikesOfAll(ctx, 0, 1)
	if err != nil {
		return err
	}
	waiting, err := delivery.WhoWaits(ctx, s.db)
	if err != nil {
		return err
	}
	sources, err := s.readSources(ctx)
	if err != nil {
		return err
	}
	page := overviewPage{frame: s.adminFrame(c, "overview"), Out: s.outNow(ctx, sources)}
	appeals := 0
	for _, w := range waiting {
		appeals += w.N
		page.Waiting = append(page.Waiting, waitingOnPage{Slug: w.Slug, Name: plain(w.Name), State: badgeOf(w.State, s.rest(w.Service), false, false),
			N: plural(w.N, "appeal", "appeals"), Oldest: momentOf(w.Oldest)})
	}
	add := func(n int, urgent bool, what, link, note string) {
		page.Counts = append(page.Counts, overviewCount{N: count(n), What: what, Link: link, Note: note, Urgent: urgent && n > 0})
	}
	add(queue.Total, false, "under strike", "/admin/strikes", "More failures of their own doing take them off the shelf.")
	add(appeals, true, "unanswered appeals", "#appeals", "A provider says that a strike is none, or that its service belongs on the shelf.")
	add(states[catalog.Held], true, "held for a review", "/admin/services?state=held", "Off the shelf until an admin has looked at them.")
	add(states[catalog.Delisted], false, "delisted", "/admin/services?state=delisted", "Off the shelf for their strikes. Only an admin puts them back.")
	add(states[catalog.Suspended], false, "suspended", "/admin/services?state=suspended", "Off the shelf because an admin said so.")
	add(len(s.guard.Open()), true, "outages of our own", "/admin/outages", "While one holds, no failure is a service's doing.")
	out := len(sources.out())
	add(out, true, "sources out", "/admin/sources", "Facilitators, nodes, mail: they refuse us, or we stopped. Work that waits for them is kept.")
	page.Counts[len(page.Counts)-1].Bad = out > 0
	notices, err := notify.Store{}.CountOpen(ctx, s.db)
	if err != nil {
		return err
	}
	add(notices, true, "open notices", "/admin/notices", "What stopped or is not as it should be, and whether you were told of it.")
	return s.writePage(c, http.StatusOK, adminHomeTemplate, page)
}

// An adminServicesPage lists services by their state.
type adminServicesPage struct {
	frame
	States      []choice
	Rows        []adminServiceRow
	First, Next string // addresses of pages; empty where there is none
	Paged       bool
}

type adminServiceRow struct {
	Slug, Name, Reason, By string
	State                  badge
	Since                  *moment
	Problems               []string
}

func (s *Server) adminServices(c echo.Context) error {
	list, err := readPage(c, "state")
	if err != nil {
		return err
	}
	state := catalog.State(list.more.Get("state"))
	if state != "" && !slices.Contains(catalog.States(), state) {
		return badParameter("state", "is no state of a service")
	}
	services, next, err := s.store.ListAll(c.Request().Context(), s.db, state, list.limit, list.cursor)
	if err != nil {
		return err
	}
	page := adminServicesPage{frame: s.adminFrame(c, "services"), Paged: list.cursor != ""}
	page.First, page.Next = pagesOf("/admin/services", list, next)
	page.States = append(page.States, choice{ID: "", Name: "any state", Chosen: state == ""})
	for _, each := range catalog.States() {
		page.States = append(page.States, choice{ID: string(each), Name: stateWord(each), Chosen: state == each})
	}
	for _, v := range services {
		row := adminServiceRow{Slug: v.Slug, Name: plain(v.Name), Reason: plain(v.StateReason), By: plain(v.StateBy.Name), State: badgeOf(v.State, s.rest(v.ID), v.Broken != "", false),
			Since: momentOf(v.StateSince)}
		for _, p := range v.Problems() {
			row.Problems = append(row.Problems, plain(p))
		}
		page.Rows = append(page.Rows, row)
	}
	return s.writePage(c, http.StatusOK, adminServicesTemplate, page)
}

// pagesOf returns the addresses of the first page of a list and of the next one; that is empty after the last.
func pagesOf(path string, list page, next string) (first, following string) {
	values := maps.Clone(list.more)
	values.Del("cursor")
	first = path + "?" + values.Encode()
	if next != "" {
		values.Set("cursor", next)
		following = path + "?" + values.Encode()
	}
	return first, following
}
