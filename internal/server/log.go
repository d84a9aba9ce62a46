package server

import (
	"context"
	"errors"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"market/internal/call"
)

// A line is the one log line of a request, filled along the way and written once. It never holds payment headers, keys or bodies.
type line struct {
	service string
	call    call.ID
	payer   string
	outcome call.Outcome
	reason  call.Reason
	err     error
	aborted bool // on purpose: a stream that did not end well
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

// logRequests writes the line in a defer, so that a handler that panics is logged too.
func logRequests(log zerolog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			started := time.Now()
			l := logOf(c)
			finished := false
			defer func() {
				event := log.Info()
				status := c.Response().Status
				switch {
				case finished && l.reason == call.Internal && left(c, l.err):
					event = event.Bool("caller_left", true)
				case l.aborted:
					event = event.Bool("aborted", true)
				case !finished || l.reason == call.Internal:
					event = log.Error()
				}
				l.write(event, c, status, time.Since(started))
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

func (l *line) write(event *zerolog.Event, c echo.Context, status int, took time.Duration) {
	event = event.Str("method", c.Request().Method).Str("route", c.Path()).Int("status", status).Float64("ms", float64(took.Microseconds())/1000)
	for name, value := range map[string]string{
		"service": l.service, "payer": l.payer, "outcome": string(l.outcome), "reason": string(l.reason),
	} {
		if value != "" {
			event = event.Str(name, value)
		}
	}
	if l.call != (call.ID{}) {
		event = event.Stringer("call", l.call)
	}
	if l.err != nil {
		event = event.AnErr("error", l.err)
	}
	event.Msg("request")
}
