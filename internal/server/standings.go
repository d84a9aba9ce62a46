package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/refusal"
)

// A page is what was asked of a list.
type page struct {
	limit  int
	cursor string
	more   url.Values // what else the list takes
}

// readPage reads the parameters of a list: limit, cursor, and those named, each at most once. Any other is refused and not guessed at.
func readPage(c echo.Context, more ...string) (page, error) {
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return page{}, refusal.New(call.InvalidParameter, "the query is malformed")
	}
	p := page{limit: catalog.ListLimitDefault, cursor: query.Get("cursor"), more: query}
	for name, values := range query {
		switch {
		case name != "limit" && name != "cursor" && !slices.Contains(more, name):
			return page{}, badParameter(name, "is no parameter of this list")
		case len(values) > 1:
			return page{}, badParameter(name, "must not be given twice")
		case name == "limit":
			if p.limit, err = strconv.Atoi(values[0]); err != nil {
				p.limit = 0 // the list says what a limit is
			}
		}
	}
	return p, nil
}

// A standingView is a service as the list of all of them shows it to an admin.
type standingView struct {
	Slug        string        `json:"slug"`
	Name        string        `json:"name"`
	State       catalog.State `json:"state"`
	StateCause  catalog.Cause `json:"state_cause"`
	StateReason string        `json:"state_reason"`
	StateBy     string        `json:"state_by"`
	StateSince  string        `json:"state_since"`
	Endpoints   int           `json:"endpoints"` // on the shelf
	Revision    int64         `json:"revision"`
	Broken      []string      `json:"broken,omitempty"`
}

// listAllServices serves GET /api/v1/admin/services: every service in whatever state, in the order of creation.
func (s *Server) listAllServices(c echo.Context) error {
	page, err := readPage(c, "state")
	if err != nil {
		return err
	}
	state := catalog.State(page.more.Get("state"))
	if page.more.Has("state") && !slices.Contains(catalog.States(), state) {
		return badParameter("state", "is no state of a service")
	}
	services, next, err := s.store.ListAll(c.Request().Context(), s.db, state, page.limit, page.cursor)
	if err != nil {
		return err
	}
	views := make([]standingView, 0, len(services))
	for _, v := range services {
		views = append(views, standingView{Slug: v.Slug, Name: v.Name, State: v.State, StateCause: v.StateCause, StateReason: v.StateReason,
			StateBy: v.StateBy.Name, StateSince: timeJSON(v.StateSince), Endpoints: len(v.Endpoints), Revision: v.Revision, Broken: v.Problems()})
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}
