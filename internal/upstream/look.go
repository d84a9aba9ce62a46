package upstream

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"market/internal/call"
	"market/internal/catalog"
)

// look sends a service's liveness probe once. No reason means that the service lives. The text names what was sent and what was expected,
// so that the provider of a service that answers its own probe with 405 can see what to change.
func (c *Client) look(ctx context.Context, s *catalog.Service) cause {
	response, is := c.probe(ctx, s)
	if isTrouble(is.reason) {
		return is
	}
	if is.reason != "" {
		is.detail = fmt.Sprintf("the service's liveness probe %s %s brought no answer: %s", s.Probe.Method, s.Probe.Path, is.detail)
		return is
	}
	drain(response)
	_ = response.Body.Close()
	if !s.Probe.Statuses.Has(response.StatusCode) {
		return cause{call.NotLive, fmt.Sprintf("the service's liveness probe %s %s was answered with status %d; its listing expects %s",
			s.Probe.Method, s.Probe.Path, response.StatusCode, s.Probe.Statuses)}
	}
	return cause{}
}

// probe sends the probe of a service's listing. The caller closes the body of the answer, which there is where the cause is none.
func (c *Client) probe(ctx context.Context, s *catalog.Service) (*http.Response, cause) {
	if s.Broken != "" {
		return nil, cause{call.LocalError, "the service's listing is broken"}
	}
	u, err := s.URL(s.Probe.Path, "")
	if err != nil {
		return nil, cause{call.LocalError, "the service's listing is broken"}
	}
	var p progress
	began := c.now()
	request, err := http.NewRequestWithContext(p.watch(c.placing(ctx, s)), s.Probe.Method, u.String(), bytes.NewReader(s.Probe.Body))
	if err != nil {
		return nil, cause{call.LocalError, "the probe could not be built"}
	}
	dress(request.Header, s, c.now())
	if len(s.Probe.Body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		// The deadline of ctx is the probe's own, not somebody who stops it.
		return nil, c.blame(context.WithoutCancel(ctx), err, &p, began)
	}
	return response, cause{}
}
