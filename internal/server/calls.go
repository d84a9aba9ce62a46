package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/payment"
	"market/internal/refusal"
	"market/internal/upstream"
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
	if upstream.Ours(in.Header) {
		// Else one request would be answered by itself for ever, or a listing would sell what others give away.
		return delivery.Request{}, refusal.New(call.InputInvalid, "the request comes from a market gateway: a service must not lead back to its market")
	}
	slug, rest, found := strings.Cut(strings.TrimPrefix(in.URL.EscapedPath(), prefix), "/")
	if found {
		rest = "/" + rest
	}
	logOf(c).service = slug
	target, no := s.catalog.Current().Route(slug, in.Method, rest)
	if no != nil {
		if no.Reason == call.NotFound {
			return delivery.Request{}, s.goneOr(in.Context(), slug, no)
		}
		if no.Reason == call.MethodNotAllowed {
			c.Response().Header().Set("Allow", strings.Join(target.Allow, ", "))
		}
		return delivery.Request{}, no
	}
	source, stranger := sourceOf(in, s.proxies)
	scanner, no := s.scanning(in.Header)
	if no != nil {
		return delivery.Request{}, no
	}
	return delivery.Request{
		Target: target, Method: in.Method, RawQuery: in.URL.RawQuery, Header: in.Header, Body: delivery.NewBody(in.Body),
		Source: source, Stranger: stranger, Scanner: scanner, Responder: responderOf(c),
	}, nil
}

// headerScanner is in which our own scanners show their key.
const headerScanner = "Market-Scanner"

// scanning says whether one of our own scanners asks. A key that is none (any more) is refused and not passed over: its failures would count as anybody's.
func (s *Server) scanning(h http.Header) (bool, *refusal.Error) {
	switch keys := h.Values(headerScanner); {
	case len(keys) == 0:
		return false, nil
	case len(keys) == 1 && s.path.IsScanner(keys[0]):
		return true, nil
	}
	return false, refusal.New(call.Unauthorized, "%s: not the key of a scanner, or not any more", headerScanner)
}

// goneOr looks up what became of a service that the snapshot does not know: one that was retired long ago is still said to be gone, and why.
func (s *Server) goneOr(ctx context.Context, slug string, no *refusal.Error) error {
	if _, known := s.catalog.Current().Named(slug); known {
		return no
	}
	gone, err := s.store.Gone(ctx, s.db, slug)
	if err != nil {
		return err
	}
	if gone != nil {
		return gone
	}
	return no
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
