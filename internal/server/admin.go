package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/refusal"
)

// bodyMax bounds what the API reads; a listing is at most this long.
const bodyMax = 1 << 20

// adminOnly asks for the admin token.
func (s *Server) adminOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.isAdmin(c) {
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="market"`)
			return refusal.New(call.Unauthorized, "this needs the admin token: Authorization: Bearer …")
		}
		return next(c)
	}
}

// isAdmin says whether a request carries the admin token.
func (s *Server) isAdmin(c echo.Context) bool {
	scheme, token, _ := strings.Cut(c.Request().Header.Get(echo.HeaderAuthorization), " ")
	return s.adminToken != "" && strings.EqualFold(scheme, "Bearer") && sameSecret(token, s.adminToken)
}

// sameSecret compares digests, so that neither the time nor the length tells anything.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func readBody(c echo.Context) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, bodyMax))
	if err != nil {
		return nil, refusal.New(call.InputTooLarge, "the body did not arrive whole, or is larger than %d bytes", bodyMax).WithCause(err)
	}
	return body, nil
}

func idParam(c echo.Context) (uuid.UUID, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.UUID{}, refusal.New(call.NotFound, "there is no such id")
	}
	return id, nil
}
