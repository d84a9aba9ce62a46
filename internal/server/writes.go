package server

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/refusal"
)

// What an account may change here in writesWindow: anybody can have one for nothing, and nearly every change leaves rows for ever. Each process counts
// for itself; what an account makes is counted in the database as well.
const (
	writesMax    = 120
	writesWindow = time.Hour
)

// unbounded are changes that only end something, each once. An account whose key was stolen can revoke it, whatever was done with the key.
var unbounded = map[string]bool{
	"DELETE /api/v1/auth/session": true, "DELETE /api/v1/provider/keys/:id": true,
	"POST /account/session/end": true, "POST /account/keys/:id/revoke": true,
}

// changes says whether a route is there to change something.
func (r route) changes() bool { return r.method != http.MethodGet && r.method != http.MethodHead }

// bounded has an account change so much in an hour. It stands between who asks and what is done. Admins have no bound.
func (s *Server) bounded(r route) echo.HandlerFunc {
	if !r.changes() || unbounded[r.method+" "+r.path] {
		return r.handler
	}
	return func(c echo.Context) error {
		p := principalOf(c)
		if p.Account == (uuid.UUID{}) || p.Admin {
			return r.handler(c)
		}
		if wait := s.writes.take(p.Account, s.now()); wait > 0 {
			return refusal.New(call.TooMany, "the account has asked for %d changes within an hour, which is as many as are taken", s.writes.most()).WithUntil(s.now().Add(wait))
		}
		return r.handler(c)
	}
}

// arrived has the whole body here before anybody is asked who they are, so that nobody is let in with a role, or as an owner, and sends what to do long
// after they have lost it. What is wrong with the body is told by whoever reads it.
func arrived(r route, next echo.HandlerFunc) echo.HandlerFunc {
	if !r.changes() {
		return next
	}
	most := int64(bodyMax)
	switch r.access {
	case adminPage:
		most = adminFormBytesMax
	case accountPage:
		most = accountFormBytesMax
	}
	return func(c echo.Context) error {
		asked := c.Request()
		body, err := io.ReadAll(http.MaxBytesReader(c.Response(), asked.Body, most))
		var read io.Reader = bytes.NewReader(body)
		if err != nil {
			read = io.MultiReader(read, broken{err})
		}
		asked.Body = io.NopCloser(read)
		return next(c)
	}
}

// broken is the end of a body that did not arrive whole.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
