package server

import (
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
)

// suspendService serves POST /api/v1/admin/services/{slug}/suspend: off the shelf, for a reason, until an admin puts it back. Calls that are under
// way end as they would have.
func (s *Server) suspendService(c echo.Context) error {
	return s.moveService(c, catalog.CauseSuspension)
}

// relistService serves POST /api/v1/admin/services/{slug}/relist: back on the shelf after a suspension or a review.
func (s *Server) relistService(c echo.Context) error { return s.moveService(c, catalog.CauseRelisting) }

func (s *Server) moveService(c echo.Context, cause catalog.Cause) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	reason, err := catalog.ParseReason(body)
	if err != nil {
		return err
	}
	service, err := s.change(c, func(tx pgx.Tx, service *catalog.Service) error {
		moved, err := s.store.Move(c.Request().Context(), tx, service.ID, catalog.Change{Cause: cause, By: catalog.AdminToken, Reason: reason})
		if err == nil && !moved {
			return catalog.WhyNot(service.State, cause)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.writeOwners(c, http.StatusOK, &service)
}

// An eventView is one change of a service's state. Who made it and the reason in full are for its owner and for admins.
type eventView struct {
	At     string        `json:"at"`
	From   catalog.State `json:"from,omitempty"` // left out for the creation
	To     catalog.State `json:"to"`
	Cause  catalog.Cause `json:"cause"`
	Reason string        `json:"reason"`
	By     string        `json:"by,omitempty"`
}

// eventViews shows the last changes of a service's state.
func (s *Server) eventViews(c echo.Context, service *catalog.Service, owner bool) ([]eventView, error) {
	events, err := s.store.Events(c.Request().Context(), s.db, service.ID)
	if err != nil {
		return nil, err
	}
	views := make([]eventView, 0, len(events))
	for _, e := range events {
		v := eventView{At: timeJSON(e.At), From: e.From, To: e.To, Cause: e.Cause, Reason: e.PublicReason()}
		if owner {
			v.Reason, v.By = e.Reason, e.By.Name
		}
		views = append(views, v)
	}
	return views, nil
}
