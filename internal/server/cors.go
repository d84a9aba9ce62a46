package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// What browsers may read of our answers and send with their requests. Official clients send Access-Control-Expose-Headers as a request
// header, so it has to be allowed.
const (
	exposedHeaders = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Market-Call, Market-Outcome, " + headerTrialLeft + ", Retry-After, Allow, Location, " +
		"WWW-Authenticate, Content-Disposition, ETag"
	allowedHeaders = "PAYMENT-SIGNATURE, X-PAYMENT, SIGN-IN-WITH-X, Content-Type, Authorization, If-Match, Access-Control-Expose-Headers"
	allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
)

// manners stand on every answer, also on one that no code of ours writes: see readable.
var manners = [][2]string{
	{"Access-Control-Allow-Origin", "*"},
	{"Access-Control-Expose-Headers", exposedHeaders},
	// A handler that knows better says so.
	{"Cache-Control", "no-store"},
}

// callVaries names what makes one answer to a call differ from another one. No cache may keep either; one that does so all the same is told
// at least that they are not one.
var callVaries = strings.Join([]string{"Accept", "User-Agent", "PAYMENT-SIGNATURE", "X-PAYMENT", "SIGN-IN-WITH-X"}, ", ")

// unhurried takes back the deadline that the answer before on this connection was written under.
func unhurried(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{}) // as in limitWrite
		return next(c)
	}
}

// cors runs before routing, so that every answer can be read by a browser, and answers preflights without reaching a route: they cost
// nothing and touch no service.
func cors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		for _, header := range manners {
			h.Set(header[0], header[1])
		}
		if c.Request().Method != http.MethodOptions {
			return next(c)
		}
		h.Set("Access-Control-Allow-Methods", allowedMethods)
		h.Set("Access-Control-Allow-Headers", allowedHeaders)
		h.Set("Access-Control-Max-Age", "600")
		return c.NoContent(http.StatusNoContent)
	}
}
