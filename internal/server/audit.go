package server

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
)

// An auditView is one decision of the audit.
type auditView struct {
	At      string          `json:"at"`
	By      string          `json:"by"`
	Actor   string          `json:"actor"`
	Action  audit.Action    `json:"action"`
	Kind    audit.Kind      `json:"subject_kind"`
	Subject string          `json:"subject"`
	Service string          `json:"service,omitempty"` // slug; left out where it is about none
	Reason  string          `json:"reason"`
	Before  json.RawMessage `json:"before"`
	After   json.RawMessage `json:"after"`
}

func auditViewOf(e audit.Entry) auditView {
	return auditView{At: timeJSON(e.At), By: e.By, Actor: e.Actor, Action: e.Action, Kind: e.Subject.Kind, Subject: e.Subject.Name, Service: e.Slug,
		Reason: e.Reason, Before: e.Before, After: e.After}
}

// listAudit serves GET /api/v1/admin/audit, the newest first; ?service= takes a slug.
func (s *Server) listAudit(c echo.Context) error {
	page, err := readPage(c, "service")
	if err != nil {
		return err
	}
	if err := page.limited(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	var of uuid.UUID
	if page.more.Has("service") {
		service, err := s.store.Find(ctx, s.db, page.more.Get("service"))
		if err != nil {
			return err
		}
		of = service.ID
	}
	entries, next, known, err := audit.Store{}.List(ctx, s.db, of, page.limit, page.cursor)
	switch {
	case err != nil:
		return err
	case !known:
		return badParameter("cursor", "is not one that we gave out")
	}
	views := make([]auditView, 0, len(entries))
	for _, e := range entries {
		views = append(views, auditViewOf(e))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}
