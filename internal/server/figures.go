package server

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
)

// What the two members of figures are. They answer different questions, so neither is ever taken from the other.
const (
	whatMeasured = "Every delivery that is kept, whoever made the call and whoever was at fault, counted by how it ended. It takes nothing off the shelf by itself."
	whatEnforced = "The open strikes against the service inside their window, counted from the strikes and not from what is measured. So many as the limit take it off the shelf."
)

// A figuresView has what was measured of a service beside what is enforced.
type figuresView struct {
	Service  string       `json:"service"`
	Measured measuredView `json:"measured"`
	Enforced enforcedView `json:"enforced"`
}

// A measuredView has no windows where nothing could be read.
type measuredView struct {
	What  string              `json:"what"`
	AsOf  string              `json:"as_of,omitempty"`
	Day   *measuredWindowView `json:"24h,omitempty"`
	Week  *measuredWindowView `json:"7d,omitempty"`
	Month *measuredWindowView `json:"30d,omitempty"`
}

type measuredWindowView struct {
	N         int                    `json:"n"`
	Traffic   []trafficView          `json:"traffic"`
	Endpoints []measuredEndpointView `json:"endpoints"`
}

type measuredEndpointView struct {
	ID      string        `json:"id"`
	Method  string        `json:"method"`
	Path    string        `json:"path"`
	Retired bool          `json:"retired"`
	N       int           `json:"n"`
	Traffic []trafficView `json:"traffic"`
}

// A trafficView is the deliveries of paid calls or of trials, from outside, of our own or of the provider.
type trafficView struct {
	Trial      bool           `json:"trial"`
	Origin     delivery.Class `json:"origin"`
	N          int            `json:"n"`
	Counts     []countView    `json:"counts"`
	Served     latencyView    `json:"served"`
	Failed     latencyView    `json:"failed"`
	NewestOnly bool           `json:"newest_only"`
	Since      string         `json:"counted_since,omitempty"`
}

type countView struct {
	Outcome call.Outcome `json:"outcome"`
	Reason  call.Reason  `json:"reason"`
	Party   call.Party   `json:"party"`
	N       int          `json:"n"`
}

// A latencyView is how long the service took for n answers.
type latencyView struct {
	N   int      `json:"n"`
	P50 *float64 `json:"p50_ms"` // null where n is 0
	P99 *float64 `json:"p99_ms"`
}

type enforcedView struct {
	What          string `json:"what"`
	Open          int    `json:"open"`
	Limit         int    `json:"limit"`
	WindowSeconds int64  `json:"window_seconds"`
	// Sources is from how many networks the evidence has to come; from fewer, the service is held for review and not delisted.
	Sources int `json:"sources_needed"`
}

// figuresOfService serves GET /api/v1/services/{slug}/figures.
func (s *Server) figuresOfService(c echo.Context) error {
	service, err := s.store.Find(c.Request().Context(), s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	view, err := s.figuresView(c.Request().Context(), &service)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, view)
}

// figuresView reads what was measured of a service, which may be some seconds old, and what is enforced, as it stands now.
func (s *Server) figuresView(ctx context.Context, v *catalog.Service) (figuresView, error) {
	enforced, err := s.path.Recorder.Enforced(ctx, s.db, v.ID)
	if err != nil {
		return figuresView{}, err
	}
	measured, at := s.scores.Figures(ctx, v.ID)
	return figuresViewOf(v.Slug, measured, at, enforced), nil
}

func figuresViewOf(slug string, measured []delivery.Measured, at time.Time, enforced delivery.Enforced) figuresView {
	view := figuresView{Service: slug, Measured: measuredView{What: whatMeasured, AsOf: timeJSON(at)},
		Enforced: enforcedView{What: whatEnforced, Open: enforced.Open, Limit: enforced.Policy.Limit, WindowSeconds: int64(enforced.Policy.Window.Seconds()),
			Sources: max(1, enforced.Policy.Sources)}}
	if at.IsZero() {
		return view
	}
	for _, m := range measured {
		window := measuredWindowOf(m)
		switch m.Window.Hours() {
		case 24:
			view.Measured.Day = &window
		case 30 * 24:
			view.Measured.Month = &window
		default:
			view.Measured.Week = &window
		}
	}
	return view
}

func measuredWindowOf(m delivery.Measured) measuredWindowView {
	window := measuredWindowView{Endpoints: []measuredEndpointView{}}
	window.N, window.Traffic = trafficViews(m.Traffic)
	for _, e := range m.Endpoints {
		view := measuredEndpointView{ID: e.ID.String(), Method: e.Method, Path: e.Path, Retired: e.Retired}
		view.N, view.Traffic = trafficViews(e.Traffic)
		window.Endpoints = append(window.Endpoints, view)
	}
	return window
}

func trafficViews(all []delivery.Traffic) (n int, views []trafficView) {
	views = []trafficView{}
	for _, t := range all {
		view := trafficView{Trial: t.Trial, Origin: t.Class, N: t.N(), Served: latencyOf(t.Served), Failed: latencyOf(t.Failed),
			NewestOnly: !t.Since.IsZero(), Since: timeJSON(t.Since)}
		for _, c := range t.Counts {
			view.Counts = append(view.Counts, countView(c))
		}
		n += view.N
		views = append(views, view)
	}
	return n, views
}

func latencyOf(l delivery.Latency) latencyView {
	view := latencyView{N: l.N}
	if l.N > 0 {
		p50, p99 := millis(l.P50), millis(l.P99)
		view.P50, view.P99 = &p50, &p99
	}
	return view
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
