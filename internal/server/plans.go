package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/identity"
	"market/internal/plan"
)

// A planView is a plan with the value of each limit, in the unit that its key names.
type planView struct {
	Name   string             `json:"name"`
	Title  string             `json:"title"`
	Limits map[plan.Key]int64 `json:"limits"`
}

// A limitView says what a limit is.
type limitView struct {
	Key         plan.Key `json:"key"`
	Title       string   `json:"title"`
	Explanation string   `json:"explanation"`
}

// A planUse is a limit of an account's plan, and of one that is counted how much of it the account uses: of what is per listing or per endpoint, the most
// that one of them has.
type planUse struct {
	Key   plan.Key `json:"key"`
	Title string   `json:"title"`
	Limit int64    `json:"limit"`
	Used  *int64   `json:"used,omitempty"`

	Shown, ShownUse string `json:"-"` // for people; the use is empty where none is counted
}

// listPlans serves GET /api/v1/plans, and to a browser its page at /pricing. Both are made of the limits that are enforced.
func (s *Server) listPlans(c echo.Context) error {
	c.Response().Header().Set("Vary", "Accept")
	if !strings.HasPrefix(c.Path(), "/api/") && wantsPage(c.Request()) {
		return s.writePage(c, http.StatusOK, pricingTemplate, s.pricingPage())
	}
	plans, limits := make([]planView, 0, len(s.store.Plans)), make([]limitView, 0, len(plan.Fields()))
	for _, p := range s.store.Plans {
		view := planView{Name: p.Name, Title: p.Title, Limits: map[plan.Key]int64{}}
		for _, f := range plan.Fields() {
			view.Limits[f.Key] = f.Of(p.Limits)
		}
		plans = append(plans, view)
	}
	for _, f := range plan.Fields() {
		limits = append(limits, limitView{f.Key, f.Title, f.Explanation})
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": plans, "limits": limits})
}

// A pricingPage shows the plans side by side.
type pricingPage struct {
	frame
	First  string // the plan that an account begins with
	Plans  []string
	Limits []limitOnPage
}

type limitOnPage struct {
	Key                plan.Key
	Title, Explanation string
	Values             []valueOnPage // in the order of the plans
}

type valueOnPage struct{ Plan, Value string }

func (s *Server) pricingPage() pricingPage {
	page := pricingPage{frame: s.frame(), First: s.store.Plans.Of("").Title}
	page.JSON = "/api/v1/plans"
	for _, p := range s.store.Plans {
		page.Plans = append(page.Plans, p.Title)
	}
	for _, f := range plan.Fields() {
		limit := limitOnPage{Key: f.Key, Title: f.Title, Explanation: f.Explanation}
		for _, p := range s.store.Plans {
			limit.Values = append(limit.Values, valueOnPage{p.Title, f.Show(p.Limits)})
		}
		page.Limits = append(page.Limits, limit)
	}
	return page
}

// planUses are the limits of an account's plan as it is now, with what it uses of them.
func (s *Server) planUses(ctx context.Context, of identity.Account) ([]planUse, error) {
	used, err := s.store.Used(ctx, s.db, of.ID)
	if err != nil {
		return nil, err
	}
	now := s.store.Plans.Of(of.Plan)
	uses := make([]planUse, 0, len(plan.Fields()))
	for _, f := range plan.Fields() {
		use := planUse{Key: f.Key, Title: f.Title, Limit: f.Of(now.Limits), Shown: f.Show(now.Limits)}
		if n := used[f.Key]; f.Counted {
			use.Used, use.ShownUse = &n, f.ShowValue(n)
		}
		uses = append(uses, use)
	}
	return uses, nil
}
