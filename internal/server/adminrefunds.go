package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/money"
	"market/internal/refund"
)

// An adminRefundView is a refund as admins see it.
type adminRefundView struct {
	Call uuid.UUID `json:"call"`
	URL  string    `json:"url"`
	money.Money
	State       refund.State `json:"state"`
	Why         string       `json:"why,omitempty"` // of the last attempt
	To          string       `json:"to"`
	Treasury    string       `json:"treasury"` // that received the payment, and gives it back
	Payment     string       `json:"payment_transaction,omitempty"`
	Nonce       string       `json:"nonce"`
	Attempts    int          `json:"attempts"`
	WaitsFor    string       `json:"waits_for,omitempty"` // the source that takes no work now
	OwedAt      string       `json:"owed_at"`
	NextAt      string       `json:"next_at,omitempty"`
	Transaction string       `json:"transaction,omitempty"`
	ConfirmedAt string       `json:"confirmed_at,omitempty"`
}

func (s *Server) adminRefundViewOf(r refund.Refund) adminRefundView {
	p := r.Payment
	v := adminRefundView{Call: p.Call, URL: s.link(p.Call).URL, Money: s.money(p.Network, p.Asset, p.Amount), State: r.State, Why: r.Why, To: p.Payer.Hex(), Treasury: p.Treasury.Hex(),
		Payment: hashJSON(p.Transaction), Nonce: r.Nonce.Hex(), Attempts: r.Attempts, WaitsFor: r.WaitsFor, OwedAt: timeJSON(r.OwedAt), NextAt: timeJSON(r.NextAt),
		Transaction: hashJSON(r.Transaction), ConfirmedAt: timeJSON(r.ConfirmedAt)}
	if r.State == refund.StateConfirmed || r.State == refund.StateVoid {
		v.NextAt = ""
	}
	return v
}

// listRefunds serves GET /api/v1/admin/refunds, of the newest calls first; ?state= takes a state.
func (s *Server) listRefunds(c echo.Context) error {
	page, err := readPage(c, "state")
	if err != nil {
		return err
	}
	before, err := page.before()
	if err != nil {
		return err
	}
	state := refund.State(page.more.Get("state"))
	if state != "" && !slices.Contains(refund.States(), state) {
		return badParameter("state", "is no state of a refund")
	}
	refunds, err := refund.Store{}.List(c.Request().Context(), s.db, state, before, page.limit+1)
	if err != nil {
		return err
	}
	refunds, next := cut(refunds, page.limit, func(r refund.Refund) uuid.UUID { return r.Payment.Call })
	views := make([]adminRefundView, 0, len(refunds))
	for _, r := range refunds {
		views = append(views, s.adminRefundViewOf(r))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}

// retryRefund serves POST /api/v1/admin/refunds/{id}/retry: a refund that could not be sent is tried again now.
func (s *Server) retryRefund(c echo.Context) error {
	retried, err := decidedOn(c, func(ctx context.Context, id call.ID, by catalog.Author, reason string) (refund.Refund, error) {
		return delivery.RetryRefund(ctx, s.db, id, by, reason)
	})
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, s.adminRefundViewOf(retried))
}

// listReviews serves GET /api/v1/admin/reviews: the calls that a restore brought in doubt.
func (s *Server) listReviews(c echo.Context) error {
	page, err := readPage(c)
	if err != nil {
		return err
	}
	before, err := page.before()
	if err != nil {
		return err
	}
	records, err := delivery.InReview(c.Request().Context(), s.db, before, page.limit+1)
	if err != nil {
		return err
	}
	records, next := cut(records, page.limit, callOf)
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": s.callViews(records), "next_cursor": next})
}

// refundReviewed serves POST /api/v1/admin/reviews/{id}/refund, and serveReviewed POST /api/v1/admin/reviews/{id}/serve.
func (s *Server) refundReviewed(c echo.Context) error { return s.endReview(c, s.path.RefundReviewed) }
func (s *Server) serveReviewed(c echo.Context) error  { return s.endReview(c, s.path.ServeReviewed) }

func (s *Server) endReview(c echo.Context, end func(context.Context, call.ID, catalog.Author, string) (delivery.Record, error)) error {
	ended, err := decidedOn(c, end)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, s.callView(ended))
}
