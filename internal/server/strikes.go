package server

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// A strikeView is one open strike with the deliveries that prove it.
type strikeView struct {
	ID         uuid.UUID   `json:"id"`
	Service    string      `json:"service"`
	OpenedAt   string      `json:"opened_at"`
	LastAt     string      `json:"last_evidence_at"`
	Deliveries int         `json:"deliveries"`
	Calls      []uuid.UUID `json:"calls"` // the first 100
}

// listStrikes serves GET /api/v1/admin/strikes: what would count at the next failure.
func (s *Server) listStrikes(c echo.Context) error {
	open, err := s.path.Recorder.OpenStrikes(c.Request().Context(), s.db)
	if err != nil {
		return err
	}
	views := make([]strikeView, 0, len(open))
	for _, o := range open {
		views = append(views, strikeView{ID: o.ID, Service: o.Service, OpenedAt: timeJSON(o.OpenedAt), LastAt: timeJSON(o.LastEvidenceAt),
			Deliveries: o.Deliveries, Calls: o.Calls})
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": ""})
}
