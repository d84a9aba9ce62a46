package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/refusal"
)

// listServices serves GET /api/v1/services.
func (s *Server) listServices(c echo.Context) error {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return refusal.New(call.InvalidParameter, "the query is malformed")
	}
	query, err := catalog.ParseQuery(values)
	if err != nil {
		return err
	}
	page, tallies := s.search(c, query)
	views := make([]serviceView, 0, len(page.Services))
	for _, service := range page.Services {
		view := s.serviceView(service)
		view.Record = recordViewOf(tallies[service.ID])
		views = append(views, view)
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": page.Next, "total": page.Total})
}

// search returns a page of services, and the tally of every one that was called lately. It asks the database nothing but, now and then, for
// the tallies of all.
func (s *Server) search(c echo.Context, q catalog.Query) (catalog.Page, map[uuid.UUID]delivery.Tally) {
	tallies := s.scores.Tallies(c.Request().Context())
	if q.Network != "" && !s.sellsOn(q.Network) {
		return catalog.Page{}, tallies // every endpoint is for sale on every network of ours, and on no other
	}
	return s.catalog.Current().Search(q, func(service uuid.UUID) int { return tallies[service].Score() }), tallies
}

func (s *Server) sellsOn(network string) bool {
	for _, n := range s.networks {
		if n.ID == network || (n.V1Name != "" && strings.EqualFold(n.V1Name, network)) {
			return true
		}
	}
	return false
}

// A recordView is what a service did with the calls from outside that reached it.
type recordView struct {
	Day   *tallyView `json:"24h,omitempty"`
	Week  *tallyView `json:"7d,omitempty"`
	Month *tallyView `json:"30d,omitempty"`
}

type tallyView struct {
	N          int      `json:"n"`
	Delivered  *float64 `json:"delivered"` // of n, from 0 to 1; null where n is 0
	Served     int      `json:"served"`
	Failed     int      `json:"failed"`
	Refused    int      `json:"refused"`
	Resting    int      `json:"in_cooldown"`
	Elsewhere  int      `json:"failed_elsewhere"`
	P50        *float64 `json:"p50_ms"`
	P99        *float64 `json:"p99_ms"`
	LastServed string   `json:"last_served_at,omitempty"`
	NewestOnly bool     `json:"newest_only"`
}

// recordViewOf shows the tallies that there are. One that was not read, for it has no call in it, is shown as that of the window of all lists.
func recordViewOf(tallies ...delivery.Tally) *recordView {
	var view recordView
	for _, st := range tallies {
		v := tallyViewOf(st)
		switch st.Window.Hours() {
		case 24:
			view.Day = &v
		case 30 * 24:
			view.Month = &v
		default:
			view.Week = &v
		}
	}
	return &view
}

func tallyViewOf(st delivery.Tally) tallyView {
	v := tallyView{N: st.N(), Served: st.Served, Failed: st.Failed, Refused: st.Refused, Resting: st.Resting, Elsewhere: st.Elsewhere,
		LastServed: timeJSON(st.LastServed), NewestOnly: st.Newest}
	if share, known := st.Delivered(); known {
		v.Delivered = &share
	}
	if st.Served > 0 {
		p50, p99 := float64(st.P50.Microseconds())/1000, float64(st.P99.Microseconds())/1000
		v.P50, v.P99 = &p50, &p99
	}
	return v
}
