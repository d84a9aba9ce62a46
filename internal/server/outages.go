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

// listOutages serves GET /api/v1/admin/outages, the newest first. The cursor is the id of the last one that was shown.
func (s *Server) listOutages(c echo.Context) error {
	page, err := readPage(c)
	if err != nil {
		return err
	}
	if err := page.limited(); err != nil {
		return err
	}
	var before uuid.UUID
	if page.cursor != "" {
		if before, err = uuid.Parse(page.cursor); err != nil || before.String() != page.cursor {
			return badParameter("cursor", "is not one that we gave out")
		}
	}
	outages, err := outage.Store{}.List(c.Request().Context(), s.db, before, page.limit+1)
	if err != nil {
		return err
	}
	next := ""
	if len(outages) > page.limit {
		outages = outages[:page.limit]
		next = outages[page.limit-1].ID.String()
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": outageViews(outages), "next_cursor": next})
}
