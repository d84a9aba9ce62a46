package server

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/outage"
)

// An outageView is an outage of the marketplace itself, during which no failure is a service's doing.
type outageView struct {
	ID      uuid.UUID    `json:"id"`
	Replica *uuid.UUID   `json:"replica"` // null: of the whole fleet
	Cause   outage.Cause `json:"cause"`
	Began   string       `json:"began_at"`
	Reaches string       `json:"reaches_back_to"` // failures recorded from here on are excused
	Held    string       `json:"held_at"`         // when what it is known by was so last
	Ended   *string      `json:"ended_at"`        // null: it holds
	// What the services did in the minute that made it known.
	Asked     int `json:"services_asked"`
	Failed    int `json:"services_failed"`
	Providers int `json:"providers_failed"`
}

func outageViews(outages []outage.Outage) []outageView {
	views := make([]outageView, 0, len(outages))
	for _, o := range outages {
		v := outageView{ID: o.ID, Cause: o.Cause, Began: timeJSON(o.Began), Reaches: timeJSON(o.Reaches), Held: timeJSON(o.Held),
			Asked: o.Failing.Asked, Failed: o.Failing.Failed, Providers: o.Failing.Providers}
		if o.Replica != (uuid.UUID{}) {
			v.Replica = &o.Replica
		}
		if !o.Ended.IsZero() {
			ended := timeJSON(o.Ended)
			v.Ended = &ended
		}
		views = append(views, v)
	}
	return views
}

// listOutages serves GET /api/v1/admin/outages, the newest first.
func (s *Server) listOutages(c echo.Context) error {
	outages, _, next, err := s.readOutages(c)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": outageViews(outages), "next_cursor": next})
}

// readOutages reads the page of outages that was asked for. The cursor is the id of the last one that was shown.
func (s *Server) readOutages(c echo.Context) ([]outage.Outage, page, string, error) {
	list, err := readPage(c)
	if err != nil {
		return nil, page{}, "", err
	}
	before, err := list.before()
	if err != nil {
		return nil, page{}, "", err
	}
	outages, err := outage.Store{}.List(c.Request().Context(), s.db, before, list.limit+1)
	if err != nil {
		return nil, page{}, "", err
	}
	outages, next := cut(outages, list.limit, func(x outage.Outage) uuid.UUID { return x.ID })
	return outages, list, next, nil
}
