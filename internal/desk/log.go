package desk

import (
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"market/internal/payment"
)

// A line is the one log line of a request. It never holds tokens, signatures or bodies.
type line struct {
	key, network, payer, transaction string
	code                             payment.Code
	err                              error
}

const lineKey = "line"

// logOf returns the line of a request.
func logOf(c echo.Context) *line {
	l, ok := c.Get(lineKey).(*line)
	if !ok {
		l = &line{}
		c.Set(lineKey, l)
	}
	return l
}

// logRequests writes the line when the answer is written.
func logRequests(log zerolog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			started := time.Now()
			l := logOf(c)
			if err := next(c); err != nil {
				c.Error(err)
			}
			event := log.Info()
			if c.Response().Status >= 500 {
				event = log.Error()
			}
			event = event.Str("method", c.Request().Method).Str("route", c.Path()).Int("status", c.Response().Status).
				Float64("ms", float64(time.Since(started).Microseconds())/1000)
			for name, value := range map[string]string{
				"key": l.key, "network": l.network, "payer": l.payer, "transaction": l.transaction, "code": string(l.code),
			} {
				if value != "" {
					event = event.Str(name, value)
				}
			}
			if l.err != nil {
				event = event.AnErr("error", l.err)
			}
			event.Msg("request")
			return nil
		}
	}
}
