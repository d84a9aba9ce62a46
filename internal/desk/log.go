package desk

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"market/internal/accesslog"
	"market/internal/payment"
)

// A line is what the log line of a request says, filled along the way. It never holds tokens, signatures or bodies.
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

func entryOf(c echo.Context) accesslog.Entry {
	l := logOf(c)
	return accesslog.Entry{Err: l.err, Fault: c.Response().Status >= http.StatusInternalServerError, Fields: map[string]string{
		"key": l.key, "network": l.network, "payer": l.payer, "transaction": l.transaction, "code": string(l.code),
	}}
}
