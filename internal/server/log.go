package server

import (
	"github.com/labstack/echo/v4"

	"market/internal/accesslog"
	"market/internal/call"
)

// A line is what the log line of a request says, filled along the way. It never holds payment headers, keys or bodies.
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

func entryOf(c echo.Context) accesslog.Entry {
	l := logOf(c)
	fields := map[string]string{"service": l.service, "payer": l.payer, "outcome": string(l.outcome), "reason": string(l.reason)}
	if l.call != (call.ID{}) {
		fields["call"] = l.call.String()
	}
	return accesslog.Entry{Err: l.err, Fault: l.reason == call.Internal, Aborted: l.aborted, Fields: fields}
}
