package server

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/catalog"
	"market/internal/delivery"
)

// voidStrike serves POST /api/v1/admin/strikes/{id}/void: the strike was none, and what followed from it is taken back.
func (s *Server) voidStrike(c echo.Context) error { return s.decideStrike(c, s.review.Void) }

// upholdStrike serves POST /api/v1/admin/strikes/{id}/uphold: the strike stays.
func (s *Server) upholdStrike(c echo.Context) error { return s.decideStrike(c, s.review.Uphold) }

func (s *Server) decideStrike(c echo.Context, do func(context.Context, uuid.UUID, catalog.Author, string) (delivery.Decision, error)) error {
	decision, err := decidedOn(c, do)
	if err != nil {
		return err
	}
	if decision.Before.State != decision.After.State {
		s.reload(c)
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, decisionViewOf(decision))
}

// A decisionView is what was decided about a strike, and what followed.
type decisionView struct {
	Strike  *uuid.UUID    `json:"strike"`
	Service string        `json:"service"`
	Action  audit.Action  `json:"action"`
	At      string        `json:"at"`
	By      string        `json:"by"`
	Reason  string        `json:"reason"`
	Effect  string        `json:"effect"` // in words
	Before  delivery.Case `json:"before"`
	After   delivery.Case `json:"after"`
}

func decisionViewOf(d delivery.Decision) decisionView {
	return decisionView{Strike: d.Strike, Service: d.Service, Action: d.Action, At: timeJSON(d.At), By: d.By.Name, Reason: d.Reason,
		Effect: d.Effect(), Before: d.Before, After: d.After}
}
