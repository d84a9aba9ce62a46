// Package accesslog writes one line for each request to a door, when its answer is written. What the line says beside the request and its status is
// the door's; whether it is one that an operator should look at is decided here, for all doors alike.
//
// The unit of ms is milliseconds, from the first byte of the request's headers that the door read to the end of its answer.
package accesslog

import (
	"context"
	"errors"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"
)

// An Entry is what a door says of one request. It never holds tokens, payment headers, signatures or bodies.
type Entry struct {
	Fields map[string]string // by name; empty ones are left out
	Err    error
	Fault  bool // something is wrong on our side
	// Aborted says that the answer was cut short on purpose, which is how a stream that did not end well has to end.
	Aborted bool
}

// Requests writes the lines, in a defer, so that a handler that panics is logged too. of is asked once the request is over.
func Requests(log zerolog.Logger, of func(c echo.Context) Entry) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			started := time.Now()
			finished := false
			defer func() {
				entry := of(c)
				event := log.Info()
				switch {
				case finished && entry.Fault && left(c, entry.Err):
					event = event.Bool("caller_left", true)
				case entry.Aborted && !entry.Fault:
					event = event.Bool("aborted", true)
				case !finished || entry.Fault:
					event = log.Error()
				}
				event = event.Str("method", c.Request().Method).Str("route", c.Path()).Int("status", c.Response().Status).
					Float64("ms", float64(time.Since(started).Microseconds())/1000)
				for name, value := range entry.Fields {
					if value != "" {
						event = event.Str(name, value)
					}
				}
				if entry.Err != nil {
					event = event.AnErr("error", entry.Err)
				}
				event.Msg("request")
			}()
			if err := next(c); err != nil {
				c.Error(err)
			}
			finished = true
			return nil
		}
	}
}

// left says that a request came to nothing because nobody waits for it any more: that is the caller's choice and no fault of ours.
func left(c echo.Context, err error) bool {
	return errors.Is(err, context.Canceled) && c.Request().Context().Err() != nil
}
