package server

import (
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/config"
)

// writeOwners answers with a listing as its owner sees it.
func (s *Server) writeOwners(c echo.Context, status int, v *catalog.Service) error {
	view, err := s.ownersView(c, v)
	if err != nil {
		return err
	}
	return s.writeJSON(c, status, typeJSON, view)
}

// ownersView is a listing as its owner sees it: with what may surprise about each endpoint, what is known of its secrets, whole reasons, and the
// last probe.
func (s *Server) ownersView(c echo.Context, v *catalog.Service) (serviceView, error) {
	view := s.serviceView(v)
	view.StateReason, view.StateBy = v.StateReason, v.StateBy.Name
	view.Headers, view.Secret = headerViews(v.Headers), &secretView{Since: timeJSON(v.Secret.Since), Next: timeJSON(v.Secret.Next)}
	view.Notices = noticesViewOf(v.Notices, config.Secret{})
	view.Probe.Body = v.Probe.Body
	for i, e := range v.Endpoints { // from the database: none of them is retired
		view.Endpoints[i] = s.ownersEndpoint(v, e)
	}
	var err error
	if view.Events, err = s.eventViews(c, v, true); err != nil {
		return serviceView{}, err
	}
	if seen, ok := s.path.Prober.Seen(v); ok {
		view.Checked = &checkedView{Live: seen.Live, At: timeJSON(seen.At), Reason: seen.Reason, Why: seen.Why}
	}
	return view, nil
}

// A checkedView is what a liveness probe found.
type checkedView struct {
	Live   bool        `json:"live"`
	At     string      `json:"at"`
	Reason call.Reason `json:"reason,omitempty"`
	Why    string      `json:"why,omitempty"`
}

func (s *Server) ownersEndpoint(v *catalog.Service, e *catalog.Endpoint) endpointView {
	view := s.endpointView(v.Slug, e)
	view.Warnings = s.path.Warnings(v, e)
	return view
}

// writeChanged answers whoever added or changed an endpoint.
func (s *Server) writeChanged(c echo.Context, status int, service *catalog.Service, e *catalog.Endpoint) error {
	view := s.ownersEndpoint(service, e)
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
