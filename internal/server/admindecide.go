package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/refusal"
)

// adminDecide serves POST /admin/strikes/{slug}: one decision about a strike or about the service. What was decided is seen where it was decided, as is
// why nothing was.
func (s *Server) adminDecide(c echo.Context) error {
	form, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	asked := decisionAsked{action: action(form.Get("action")), strike: form.Get("strike"), seen: form.Get("state_since"), reason: strings.Join(strings.Fields(form.Get("reason")), " ")}
	decided, err := s.decide(c, asked)
	if err == nil {
		return c.Redirect(http.StatusSeeOther, "/admin/strikes/"+url.PathEscape(decided.Service)+"?done="+strconv.FormatInt(decided.Entry, 10))
	}
	status, shown := asked.refused(err)
	if !shown {
		return err
	}
	return s.writeStrikePage(c, status, asked)
}

// decide does what a form asks for.
func (s *Server) decide(c echo.Context, asked decisionAsked) (delivery.Decision, error) {
	if _, known := dones[asked.action]; !known {
		return delivery.Decision{}, refusal.New(call.NotFound, "there is no such decision")
	}
	order, err := asked.order()
	if err != nil {
		return delivery.Decision{}, err
	}
	order.By = authorOf(c)
	decision, err := s.order(c, asked, order)
	if err != nil {
		return delivery.Decision{}, err
	}
	if decision.Before.State != decision.After.State {
		s.reload(c)
	}
	return decision, nil
}

// order reads a form as the API reads its body.
func (asked decisionAsked) order() (delivery.Order, error) {
	members := map[string]string{"reason": asked.reason}
	if asked.seen != "" {
		members["state_since"] = asked.seen
	}
	body, err := json.Marshal(members)
	if err != nil {
		return delivery.Order{}, err
	}
	order := delivery.Order{}
	order.Reason, order.StateSince, err = catalog.ParseOrder(body)
	return order, err
}

func (s *Server) order(c echo.Context, asked decisionAsked, order delivery.Order) (decided delivery.Decision, err error) {
	ctx := c.Request().Context()
	switch asked.action {
	case actRelist:
		_, decided, err = s.review.Relist(ctx, c.Param("slug"), order)
		return decided, err
	case actSuspend:
		_, decided, err = s.review.Suspend(ctx, c.Param("slug"), order)
		return decided, err
	case actLeave:
		_, decided, err = s.review.UpholdService(ctx, c.Param("slug"), order)
		return decided, err
	case actVoid, actUphold:
	}
	strike, err := uuid.Parse(asked.strike)
	if err != nil {
		return delivery.Decision{}, refusal.New(call.NotFound, "there is no such strike")
	}
	if asked.action == actVoid {
		return s.review.Void(ctx, strike, order.By, order.Reason)
	}
	return s.review.Uphold(ctx, strike, order.By, order.Reason)
}
