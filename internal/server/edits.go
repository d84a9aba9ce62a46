package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
)

// editService serves PATCH /api/v1/services/{slug}. Where its requests would go elsewhere, the host is looked up first, and the answer says how the
// probe went at once, as for a new listing.
func (s *Server) editService(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	view, err := s.editListing(c, body)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, view)
}

// editListing changes what the service of a route says of itself, by the document of the API.
func (s *Server) editListing(c echo.Context, body []byte) (serviceView, error) {
	before, err := s.store.Find(c.Request().Context(), s.db, c.Param("slug"))
	if err != nil {
		return serviceView{}, err
	}
	draft, err := before.ParsePatch(body, s.rules)
	if err != nil {
		return serviceView{}, err
	}
	if draft.BaseURL != before.BaseURL {
		if err := s.vetHost(c, baseURLMember, draft.BaseURL); err != nil {
			return serviceView{}, err
		}
	}
	if err := s.vetWebhook(c, before.Notices, draft.Notices); err != nil {
		return serviceView{}, err
	}
	edited, err := s.edit(c, func(tx pgx.Tx) (catalog.Edited, error) {
		return s.store.EditService(c.Request().Context(), tx, c.Param("slug"), s.editOf(c, body), s.rules)
	})
	if err != nil {
		return serviceView{}, err
	}
	view, err := s.ownersView(c, &edited.Service)
	if err != nil {
		return serviceView{}, err
	}
	view.Notices = noticesViewOf(edited.Service.Notices, edited.NoticeSecret)
	if edited.Service.ProbeID() != before.ProbeID() {
		view.Checks = []checkView{s.checkProbe(c, s.asSold(&edited.Service))}
	}
	return view, nil
}

// editEndpoint serves PATCH /api/v1/services/{slug}/endpoints/{id}. The price before stays acceptable for the quote validity.
func (s *Server) editEndpoint(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	edited, err := s.changeEndpoint(c, body)
	if err != nil {
		return err
	}
	return s.writeChanged(c, http.StatusOK, &edited.Service, edited.Endpoint)
}

// changeEndpoint changes the endpoint of a route, by the document of the API.
func (s *Server) changeEndpoint(c echo.Context, body []byte) (catalog.Edited, error) {
	id, err := idParam(c)
	if err != nil {
		return catalog.Edited{}, err
	}
	return s.edit(c, func(tx pgx.Tx) (catalog.Edited, error) {
		return s.store.EditEndpoint(c.Request().Context(), tx, c.Param("slug"), id, s.editOf(c, body), s.rules)
	})
}

// edit makes one change of a listing in one transaction, and lets everybody see it.
func (s *Server) edit(c echo.Context, change func(pgx.Tx) (catalog.Edited, error)) (catalog.Edited, error) {
	var edited catalog.Edited
	err := pgx.BeginFunc(c.Request().Context(), s.db, func(tx pgx.Tx) error {
		var err error
		edited, err = change(tx)
		return err
	})
	if err != nil {
		return catalog.Edited{}, err
	}
	if edited.Changed {
		s.reload(c)
	}
	setRevision(c, &edited.Service)
	return edited, nil
}

// change makes one change of a service that is no edit of what it says, in one transaction and on the revision that the request rests on, and lets
// everybody see it. It returns the service as it stands then.
func (s *Server) change(c echo.Context, do func(tx pgx.Tx, service *catalog.Service) error) (service catalog.Service, err error) {
	ctx, slug := c.Request().Context(), c.Param("slug")
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if service, err = s.store.At(ctx, tx, slug, revisionsOf(c.Request().Header)); err != nil {
			return err
		}
		if err := do(tx, &service); err != nil {
			return err
		}
		service, err = s.store.Find(ctx, tx, slug)
		return err
	})
	if err != nil {
		return catalog.Service{}, err
	}
	s.reload(c)
	setRevision(c, &service)
	return service, nil
}

// editOf is a change as it came: by whom, and on which revisions it may rest.
func (s *Server) editOf(c echo.Context, body []byte) catalog.Edit {
	return catalog.Edit{Patch: body, By: authorOf(c), Revisions: revisionsOf(c.Request().Header), Secrets: s.secrets}
}

// setRevision names the revision that an answer shows, in the form that If-Match takes.
func setRevision(c echo.Context, service *catalog.Service) {
	c.Response().Header().Set("ETag", `"`+strconv.FormatInt(service.Revision, 10)+`"`)
}

// revisionsOf reads If-Match: the revisions on which a change may rest; nil for any. What is not one of ours matches none.
func revisionsOf(h http.Header) []int64 {
	tags := strings.Join(h.Values("If-Match"), ",")
	if tags == "" || strings.TrimSpace(tags) == "*" {
		return nil
	}
	revisions := []int64{}
	for tag := range strings.SplitSeq(tags, ",") {
		tag, quoted := strings.CutPrefix(strings.TrimSpace(tag), `"`)
		tag, ended := strings.CutSuffix(tag, `"`)
		if n, err := strconv.ParseInt(tag, 10, 64); err == nil && quoted && ended {
			revisions = append(revisions, n)
		}
	}
	return revisions
}

// A revisionView is one edit of a listing: of the members that changed, what they were and what they became.
type revisionView struct {
	Revision int64           `json:"revision"`
	Endpoint string          `json:"endpoint,omitempty"` // its id; left out for the service itself
	At       string          `json:"at"`
	By       string          `json:"by"`
	Before   json.RawMessage `json:"before,omitempty"` // left out for what was added
	After    json.RawMessage `json:"after,omitempty"`  // left out for what was retired
}

// listRevisions serves GET /api/v1/services/{slug}/revisions, the newest first.
func (s *Server) listRevisions(c echo.Context) error {
	page, err := readPage(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	service, err := s.store.Find(ctx, s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	revisions, next, err := s.store.Revisions(ctx, s.db, service.ID, page.limit, page.cursor)
	if err != nil {
		return err
	}
	views := make([]revisionView, 0, len(revisions))
	for _, r := range revisions {
		v := revisionView{Revision: r.Number, At: timeJSON(r.At), By: r.By.Name, Before: r.Before, After: r.After}
		if r.Endpoint != nil {
			v.Endpoint = r.Endpoint.String()
		}
		views = append(views, v)
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}
