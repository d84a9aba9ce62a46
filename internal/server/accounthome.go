package server

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/identity"
)

var accountHomeTemplate = accountTemplate("home")

// servicesShown is how many services stand on one page of a seller.
const servicesShown = 50

// A sellerPage is where a seller begins: the services, the plan with what is used of it, the account.
type sellerPage struct {
	frame
	Done        string
	Services    []sellerRow
	First, Next string // addresses of pages; empty where there is none
	Paged       bool
	Plan        string
	Limits      []usedOnPage
	Wallet      string
	Created     *moment
	Keys        string
}

type sellerRow struct {
	Slug, Name, Reason                     string
	State                                  badge
	Since                                  *moment
	Endpoints, Delivered, Checked, Strikes string
	Warnings                               []string
}

// A usedOnPage is a limit of the plan. Used is empty where there is nothing to count; Full: no more of it can be made.
type usedOnPage struct {
	Name, Value, Used string
	Full              bool
}

// accountOverview serves GET /account.
func (s *Server) accountOverview(c echo.Context) error {
	list, err := readPage(c)
	if err != nil {
		return err
	}
	before, err := list.before()
	if err != nil {
		return err
	}
	ctx, own := c.Request().Context(), principalOf(c).Account
	account, err := s.identities.ByID(ctx, s.db, own)
	if err != nil {
		return err
	}
	services, err := s.store.Owned(ctx, s.db, own, before, servicesShown+1)
	if err != nil {
		return err
	}
	services, next := cut(services, servicesShown, func(v *catalog.Service) uuid.UUID { return v.ID })
	page := sellerPage{frame: s.accountFrame(c, "overview"), Paged: list.cursor != "", First: accountHome, Wallet: account.Wallet.Hex(), Created: momentOf(account.CreatedAt)}
	if next != "" {
		page.Next = accountHome + "?cursor=" + next
	}
	for _, v := range services {
		row, err := s.sellerRow(c, v)
		if err != nil {
			return err
		}
		page.Services = append(page.Services, row)
	}
	page.Plan = s.store.Plans.Of(account.Plan).Title
	uses, err := s.planUses(ctx, account)
	if err != nil {
		return err
	}
	for _, u := range uses {
		page.Limits = append(page.Limits, usedOnPage{Name: u.Title, Value: u.Shown, Used: u.ShownUse, Full: u.Used != nil && *u.Used >= u.Limit})
	}
	keys, err := s.identities.Keys(ctx, s.db, own)
	if err != nil {
		return err
	}
	page.Keys = plural(liveKeys(keys, s.now()), "key that is good", "keys that are good")
	return s.writePage(c, http.StatusOK, accountHomeTemplate, page)
}

// liveKeys counts those that are good.
func liveKeys(keys []identity.APIKey, now time.Time) (n int) {
	for _, k := range keys {
		if k.RevokedAt.IsZero() && !hasEnded(k, now) {
			n++
		}
	}
	return n
}

// hasEnded says whether the time of a key is over.
func hasEnded(k identity.APIKey, now time.Time) bool {
	return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)
}

// sellerRow is one service among those of its seller.
func (s *Server) sellerRow(c echo.Context, v *catalog.Service) (sellerRow, error) {
	ctx := c.Request().Context()
	row := sellerRow{Slug: v.Slug, Name: plain(v.Name), State: s.badge(v), Since: momentOf(v.StateSince), Reason: plain(v.StateReason),
		Endpoints: count(len(v.Endpoints)), Delivered: "no paid calls yet"}
	tallies, at := s.scores.All(ctx)
	if tally := tallies[v.ID]; at.IsZero() {
		row.Delivered = "not known just now"
	} else if share, some := tally.Delivered(); some {
		row.Delivered = percent(share) + " of " + count(tally.N())
	}
	var err error
	if row.Checked, err = s.checkWords(ctx, v); err != nil {
		return row, err
	}
	read, err := s.path.Recorder.StrikesOf(ctx, v.ID)
	if err != nil {
		return row, err
	}
	row.Strikes = count(read.Summary.Open) + " of " + count(read.Summary.Policy.Limit)
	for _, p := range v.Problems() {
		row.Warnings = append(row.Warnings, "Broken: "+plain(p)+".")
	}
	for _, e := range v.Endpoints {
		for _, w := range s.path.Warnings(v, e) {
			row.Warnings = append(row.Warnings, plain(e.Method+" "+e.Path+": "+w)+".")
		}
	}
	return row, nil
}
