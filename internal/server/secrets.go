package server

import (
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/config"
)

// A headerView is all that is ever shown of a header of a service: never its value.
type headerView struct {
	Name  string `json:"name"`
	SetAt string `json:"set_at"`
}

// A secretView says from when a service's secret is sent. The value is in the answer that made it, and in no other.
type secretView struct {
	Value string `json:"value,omitempty"`
	Since string `json:"sent_from,omitempty"`      // empty where the service has none yet
	Next  string `json:"next_sent_from,omitempty"` // of the one that waits to follow it
}

func headerViews(headers []catalog.ServiceHeader) []headerView {
	views := make([]headerView, 0, len(headers))
	for _, h := range headers {
		views = append(views, headerView{Name: h.Name, SetAt: timeJSON(h.SetAt)})
	}
	return views
}

// replaceHeaders serves PUT /api/v1/services/{slug}/headers: what is given is all that the service gets.
func (s *Server) replaceHeaders(c echo.Context) error { return s.setHeaders(c, false) }

// changeHeaders serves PATCH of the same: null removes a header, and what is not named stays.
func (s *Server) changeHeaders(c echo.Context) error { return s.setHeaders(c, true) }

func (s *Server) setHeaders(c echo.Context, merge bool) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	edited, err := s.editHeaders(c, body, merge)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"headers": headerViews(edited.Service.Headers)})
}

// editHeaders changes the headers of the service of a route, by the document of the API.
func (s *Server) editHeaders(c echo.Context, body []byte, merge bool) (catalog.Edited, error) {
	change, err := catalog.ParseHeaders(body, merge)
	if err != nil {
		return catalog.Edited{}, err
	}
	return s.edit(c, func(tx pgx.Tx) (catalog.Edited, error) {
		return s.store.EditHeaders(c.Request().Context(), tx, c.Param("slug"), change, s.editOf(c, body))
	})
}

// newSecret serves POST /api/v1/services/{slug}/secret.
func (s *Server) newSecret(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	view, err := s.makeSecret(c, body)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, view)
}

// makeSecret gives the service of a route another secret, which the view shows once.
func (s *Server) makeSecret(c echo.Context, body []byte) (secretView, error) {
	after, err := catalog.ParseSecretChange(body)
	if err != nil {
		return secretView{}, err
	}
	var secret config.Secret
	var since time.Time
	_, err = s.edit(c, func(tx pgx.Tx) (edited catalog.Edited, err error) {
		secret, since, edited, err = s.store.EditSecret(c.Request().Context(), tx, c.Param("slug"), after, s.editOf(c, body))
		return edited, err
	})
	if err != nil {
		return secretView{}, err
	}
	return secretView{Value: secret.Reveal(), Since: timeJSON(since)}, nil
}
