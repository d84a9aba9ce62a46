package server

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/catalog"
	"market/internal/delivery"
)

// An appealView is what a provider said to a strike or to its service being off the shelf, with the decision that answered it.
type appealView struct {
	ID     uuid.UUID     `json:"id"`
	Strike *uuid.UUID    `json:"strike,omitempty"` // left out for one about the service
	At     string        `json:"at"`
	By     string        `json:"by"`
	Text   string        `json:"text"`
	Answer *answeredView `json:"answer,omitempty"` // left out while it waits
}

type answeredView struct {
	Action audit.Action `json:"action"`
	At     string       `json:"at"`
	By     string       `json:"by"`
	Reason string       `json:"reason"`
}

func appealViewOf(a delivery.Appeal) appealView {
	v := appealView{ID: a.ID, At: timeJSON(a.At), By: a.By.Name, Text: a.Text}
	if a.Strike != (uuid.UUID{}) {
		v.Strike = &a.Strike
	}
	if a.Answer != nil {
		v.Answer = &answeredView{Action: a.Answer.Action, At: timeJSON(a.Answer.At), By: a.Answer.By, Reason: a.Answer.Reason}
	}
	return v
}

// appeal serves POST /api/v1/services/{slug}/appeals.
func (s *Server) appeal(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	made, err := s.makeAppeal(c, body)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, appealViewOf(made))
}

// makeAppeal says what a provider says to a strike, or to where its service went, by the document of the API.
func (s *Server) makeAppeal(c echo.Context, body []byte) (delivery.Appeal, error) {
	draft, err := catalog.ParseAppeal(body)
	if err != nil {
		return delivery.Appeal{}, err
	}
	return s.review.Appeal(c.Request().Context(), c.Param("slug"), authorOf(c), draft)
}

// listAppeals serves GET /api/v1/services/{slug}/appeals, the newest first. The cursor is the id of the last one that was shown.
func (s *Server) listAppeals(c echo.Context) error {
	page, err := readPage(c)
	if err != nil {
		return err
	}
	before, err := page.before()
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	service, err := s.store.Find(ctx, s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	appeals, err := delivery.Appeals(ctx, s.db, service.ID, before, page.limit+1)
	if err != nil {
		return err
	}
	appeals, next := cut(appeals, page.limit, func(x delivery.Appeal) uuid.UUID { return x.ID })
	views := make([]appealView, 0, len(appeals))
	for _, a := range appeals {
		views = append(views, appealViewOf(a))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}
