package server

import (
	"fmt"
	"net/http"

	"github.com/shopspring/decimal"

	"market/internal/catalog"
)

// ways are the commands with which an endpoint is called, to copy; see shellQuote.
type ways struct {
	Market, Curl, Fetch string
	AboveStock          bool // the official client refuses the price unless it is told otherwise
	Filled              bool // they have the listing's own example in them
}

// waysTo shows how to call an endpoint at its price.
func (s *Server) waysTo(slug string, e *catalog.Endpoint, usd decimal.Decimal) ways {
	example := exampleOf(e)
	at := s.publicURL + "/s/" + slug + example.path
	w := ways{
		Filled: example.filled,
		Market: "market call " + shellQuote(at) + example.flags() + " --max-usd " + usd.String(),
		Curl:   "curl -gi " + shellQuote(at) + example.flags(),
		Fetch:  fmt.Sprintf(fetchExample, scriptQuote(at)+example.options()),
	}
	if price, priced := e.Price(); priced {
		w.AboveStock = price.AboveStock()
	}
	if e.Method == http.MethodHead {
		w.Curl = "curl -gI " + shellQuote(at)
	}
	if catalog.TakesBody(e.Method) {
		w.Curl += " -H 'Content-Type: application/json'"
	}
	return w
}
