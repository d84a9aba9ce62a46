package server

import (
	"fmt"
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
	draft, err := catalog.ParseAppeal(body)
	if err != nil {
		return err
	}
	made, err := s.review.Appeal(c.Request().Context(), c.Param("slug"), catalog.AdminToken, draft)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, appealViewOf(made))
}

// listAppeals serves GET /api/v1/services/{slug}/appeals, the newest first. The cursor is the id of the last one that was shown.
func (s *Server) listAppeals(c echo.Context) error {
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
	ctx := c.Request().Context()
	service, err := s.store.Find(ctx, s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	appeals, err := delivery.Appeals(ctx, s.db, service.ID, before, page.limit+1)
	if err != nil {
		return err
	}
	next := ""
	if len(appeals) > page.limit {
		appeals = appeals[:page.limit]
		next = appeals[page.limit-1].ID.String()
	}
	views := make([]appealView, 0, len(appeals))
	for _, a := range appeals {
		views = append(views, appealViewOf(a))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}

// before is the row that the page begins after, in a list of which the cursor is the id of the last row shown; the zero id on the first page.
func (p page) before() (id uuid.UUID, err error) {
	if err := p.limited(); err != nil || p.cursor == "" {
		return id, err
	}
	if id, err = uuid.Parse(p.cursor); err != nil || id.String() != p.cursor {
		return id, badParameter("cursor", "is not one that we gave out")
	}
	return id, nil
}

// limited refuses a page of a size that none has.
func (p page) limited() error {
	if p.limit < 1 || p.limit > catalog.ListLimitMax {
		return badParameter("limit", fmt.Sprintf("must be a whole number from 1 to %d", catalog.ListLimitMax))
	}
	return nil
}
