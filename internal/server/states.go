package server

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/delivery"
)

// suspendService serves POST /api/v1/admin/services/{slug}/suspend: off the shelf, for a reason, until an admin puts it back. Calls that are under
// way end as they would have.
func (s *Server) suspendService(c echo.Context) error { return s.orderService(c, s.review.Suspend) }

// relistService serves POST /api/v1/admin/services/{slug}/relist: back on the shelf after a delisting, a suspension or a review.
func (s *Server) relistService(c echo.Context) error { return s.orderService(c, s.review.Relist) }

// upholdService serves POST /api/v1/admin/services/{slug}/uphold: it stays as it is, and what its provider says about it is answered.
func (s *Server) upholdService(c echo.Context) error {
	return s.orderService(c, s.review.UpholdService)
}

func (s *Server) orderService(c echo.Context, do func(context.Context, string, delivery.Order) (catalog.Service, delivery.Decision, error)) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	order := delivery.Order{By: authorOf(c), Revisions: revisionsOf(c.Request().Header)}
	if order.Reason, order.StateSince, err = catalog.ParseOrder(body); err != nil {
		return err
	}
	service, _, err := do(c.Request().Context(), c.Param("slug"), order)
	if err != nil {
		return err
	}
	s.reload(c)
	setRevision(c, &service)
	return s.writeOwners(c, http.StatusOK, &service)
}

// decidedOn has an admin decide, for a reason that is the body, about what the route names by its id.
func decidedOn[T any](c echo.Context, do func(context.Context, uuid.UUID, catalog.Author, string) (T, error)) (made T, err error) {
	id, err := idParam(c)
	if err != nil {
		return made, err
	}
	body, err := readBody(c)
	if err != nil {
		return made, err
	}
	reason, err := catalog.ParseReason(body)
	if err != nil {
		return made, err
	}
	return do(c.Request().Context(), id, authorOf(c), reason)
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
