package upstream

import (
	"context"
	"fmt"
	"net/http"

	"market/internal/call"
	"market/internal/catalog"
)

// look sends a service's liveness probe once. No reason means that the service lives.
func (c *Client) look(ctx context.Context, s *catalog.Service) cause {
	if s.Broken != "" {
		return cause{call.LocalError, "the service's listing is broken"}
	}
	u, err := s.URL(s.Probe.Path, "")
	if err != nil {
		return cause{call.LocalError, "the service's listing is broken"}
	}
	var p progress
	request, err := http.NewRequestWithContext(p.watch(ctx), s.Probe.Method, u.String(), nil)
	if err != nil {
		return cause{call.LocalError, "the probe could not be built"}
	}
	dress(request.Header, s)
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return classify(err, &p, false)
	}
	drain(response)
	_ = response.Body.Close()
	if !s.Probe.Statuses.Has(response.StatusCode) {
		return cause{call.NotLive, fmt.Sprintf("the service's liveness probe answered %d", response.StatusCode)}
	}
	return cause{}
}
