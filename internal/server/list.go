package server

import (
	"net/http"
	"net/url"
	"strings"
	"time"

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
	if err := s.refuseForeign(query); err != nil {
		return err
	}
	page, scores := s.search(c, query)
	views := make([]serviceView, 0, len(page.Services))
	for _, service := range page.Services {
		view := s.serviceView(service)
		view.Record = recordViewOf(scores.at, scores.of(service.ID))
		views = append(views, view)
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": page.Next, "total": page.Total})
}

// scores are the tallies of all services, read at one time; zero where they could not be read.
type scores struct {
	tallies map[uuid.UUID]delivery.Tally
	at      time.Time
}

func (s scores) of(service uuid.UUID) delivery.Tally {
	tally := s.tallies[service]
	tally.Window = delivery.ScoreWindow // also of a service that is newer than the reading
	return tally
}

// search returns a page of services, and the tallies of all. It asks the database nothing but, now and then, for those.
func (s *Server) search(c echo.Context, q catalog.Query) (catalog.Page, scores) {
	var read scores
	read.tallies, read.at = s.scores.All(c.Request().Context())
	if q.Network != "" {
		q.Offered = s.path.OfferedOn(q.Network)
	}
	return s.catalog.Current().Search(q, func(service uuid.UUID) int { return read.tallies[service].Score() }), read
}

// refuseForeign refuses a network that is none of ours: nothing is for sale there.
func (s *Server) refuseForeign(q catalog.Query) error {
	var ours []string
	for _, n := range s.networks {
		if q.Network == "" || n.Named(q.Network) {
			return nil
		}
		ours = append(ours, n.ID)
	}
	return badParameter("network", "is none that calls are paid on here: "+strings.Join(ours, ", "))
}

// A recordView is what a service did with the calls from outside that reached it, as it was when it was read.
type recordView struct {
	AsOf  string     `json:"as_of"`
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
	Left       int      `json:"caller_left"`
	Payers     int      `json:"payers"`
	P50        *float64 `json:"p50_ms"`
	P99        *float64 `json:"p99_ms"`
	LastServed string   `json:"last_served_at,omitempty"`
	NewestOnly bool     `json:"newest_only"`
	Since      string   `json:"counted_since,omitempty"`
	Trials     trials   `json:"trials"`
}

type trials struct {
	N      int `json:"n"`
	Served int `json:"served"`
}

// recordViewOf shows tallies that were read at a time; nil where they could not be.
func recordViewOf(at time.Time, tallies ...delivery.Tally) *recordView {
	if at.IsZero() {
		return nil
	}
	view := recordView{AsOf: timeJSON(at)}
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
		Left: st.Left, Payers: st.Payers, LastServed: timeJSON(st.LastServed), NewestOnly: st.Newest(), Since: timeJSON(st.Since),
		Trials: trials{N: st.Trials, Served: st.TrialsServed}}
	if share, known := st.Delivered(); known {
		v.Delivered = &share
	}
	if st.Served > 0 {
		p50, p99 := millis(st.P50), millis(st.P99)
		v.P50, v.P99 = &p50, &p99
	}
	return v
}
