package server

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/refusal"
	"market/internal/upstream"
)

const (
	// vetTime bounds the look-up of a host and checkTime the probe of a new listing: its owner waits for both.
	vetTime   = 3 * time.Second
	checkTime = 2500 * time.Millisecond
	vetRetry  = 5 * time.Second
)

// An Upstream looks at a service from here, for its owner.
type Upstream interface {
	// Vet looks up where a base URL leads. A *upstream.HostError says why a service must not be there; any other error is our trouble.
	Vet(ctx context.Context, baseURL string) error
	// Check sends the probe of a listing once and says what came back.
	Check(ctx context.Context, s *catalog.Service) upstream.Finding
}

// vetHost refuses a listing whose member, a URL, names a host that does not exist or leads inside somebody's network. Where we cannot look, the listing
// has to wait.
func (s *Server) vetHost(c echo.Context, member, address string) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), vetTime)
	defer cancel()
	err := s.upstream.Vet(ctx, address)
	if err == nil {
		return nil
	}
	bad, ok := errors.AsType[*upstream.HostError](err)
	if !ok {
		return refusal.New(call.NotReady, "the host of %s could not be looked up from here; "+
			"if that lasts while other hosts work, look at the name servers of its domain", strings.ReplaceAll(member[1:], "/", ".")).WithUntil(s.now().Add(vetRetry)).WithCause(err)
	}
	no := refusal.New(call.InvalidRequest, "%s %s", member, bad.Problem)
	no.Fields = []refusal.Field{{Name: member, Message: bad.Problem}}
	return no
}

// A checkView is what a check of a new listing found.
type checkView struct {
	Name     string `json:"name"`
	Passed   bool   `json:"passed"`
	Request  string `json:"request"`  // what we sent
	Expected string `json:"expected"` // what the listing says comes back
	Received string `json:"received"` // what came back, cut and escaped
}

// checkProbe tells the owner of a new listing how its probe went. The listing stands however it went: it is not live until its probe passes.
func (s *Server) checkProbe(c echo.Context, v *catalog.Service) checkView {
	ctx, cancel := context.WithTimeout(c.Request().Context(), checkTime)
	defer cancel()
	found := s.upstream.Check(ctx, v)
	return checkView{Name: "probe", Passed: found.Passed, Request: found.Request, Expected: found.Expected, Received: found.Received}
}
