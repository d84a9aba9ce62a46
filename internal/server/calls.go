package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/payment"
	"market/internal/refusal"
)

// paidCall serves ANY /s/{service}/{path…}: pay for one call and get it.
func (s *Server) paidCall(c echo.Context) error {
	c.Response().Header().Set("Vary", callVaries)
	r, err := s.request(c, "/s/")
	if err != nil {
		return err
	}
	if !payment.Sent(c.Request().Header) {
		challenge, no := s.path.Quote(c.Request().Context(), r)
		if no != nil {
			return no
		}
		return s.writeChallenge(c, r.Target, challenge)
	}
	return s.writeAnswer(c, s.path.Call(c.Request().Context(), r))
}

// trialCall serves ANY /try/{service}/{path…}: one of the day's free calls.
func (s *Server) trialCall(c echo.Context) error {
	r, err := s.request(c, "/try/")
	if err != nil {
		return err
	}
	return s.writeAnswer(c, s.path.Trial(c.Request().Context(), r))
}

// request matches the path once, on its escaped form: echo's parameters come decoded or not depending on the input, and a gate and a
// router that read one path differently are how paywalls are passed.
func (s *Server) request(c echo.Context, prefix string) (delivery.Request, error) {
	in := c.Request()
	slug, rest, found := strings.Cut(strings.TrimPrefix(in.URL.EscapedPath(), prefix), "/")
	if found {
		rest = "/" + rest
	}
	logOf(c).service = slug
	target, no := s.catalog.Current().Route(slug, in.Method, rest)
	if no != nil {
		if no.Reason == call.MethodNotAllowed {
			c.Response().Header().Set("Allow", strings.Join(target.Allow, ", "))
		}
		return delivery.Request{}, no
	}
	source, stranger := sourceOf(in, s.proxies)
	return delivery.Request{
		Target: target, Method: in.Method, RawQuery: in.URL.RawQuery, Header: in.Header, Body: delivery.NewBody(in.Body),
		Source: source, Origin: originOf(source, stranger, s.own), Responder: responderOf(c),
	}, nil
}

// callByID serves GET /api/v1/calls/{id}: where is my money. A browser gets it in words.
func (s *Server) callByID(c echo.Context) error {
	c.Response().Header().Set("Vary", "Accept")
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return refusal.New(call.NotFound, "there is no such call")
	}
	r, err := delivery.Lookup(c.Request().Context(), s.db, id)
	if errors.Is(err, delivery.ErrNoCall) {
		return refusal.New(call.NotFound, "there is no such call")
	}
	if err != nil {
		return err
	}
	view := s.callView(r)
	view.Receipt = s.path.Receipt(r)
	if wantsPage(c.Request()) {
		return s.writeCallPage(c, r, view)
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, view)
}
