package server

import (
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
)

// ownersView is a listing as its owner sees it: with what may surprise about each endpoint, and what is known of its secrets.
func (s *Server) ownersView(v *catalog.Service) serviceView {
	view := s.serviceView(v)
	view.Headers, view.Secret = headerViews(v.Headers), &secretView{Since: timeJSON(v.Secret.Since), Next: timeJSON(v.Secret.Next)}
	view.Probe.Body = v.Probe.Body
	for i, e := range v.Endpoints { // from the database: none of them is retired
		view.Endpoints[i].Warnings = s.path.Warnings(v, e)
	}
	return view
}

// writeChanged answers whoever added or changed an endpoint.
func (s *Server) writeChanged(c echo.Context, status int, service *catalog.Service, e *catalog.Endpoint) error {
	view := s.endpointView(service.Slug, e)
	view.Warnings = s.path.Warnings(service, e)
	s.logWarnings(service.Slug, view)
	return s.writeJSON(c, status, typeJSON, view)
}

// logWarnings writes one line for each revision of a listing and none for a request: what surprises the owner surprises callers, who ask
// the operator.
func (s *Server) logWarnings(slug string, e endpointView) {
	if len(e.Warnings) == 0 {
		return
	}
	s.log.Warn().Str("service", slug).Str("endpoint", e.ID).Int64("price_revision", e.PriceRevision).Strs("warnings", e.Warnings).
		Msg("listing has warnings")
}
