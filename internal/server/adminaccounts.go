package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/identity"
	"market/internal/refusal"
)

var adminAccountsTemplate = adminTemplate("accounts")

// An accountsPage lists who signed in, and lets an admin give an account another plan.
type accountsPage struct {
	frame
	Done, Conflict string
	Wallet         string // that was looked for; empty: all are listed
	WalletProblem  string
	Rows           []accountOnPage
	First, Next    string // addresses of pages; empty where there is none
	Paged          bool
}

type accountOnPage struct {
	ID, Wallet, Plan string
	Unknown          string // the plan that it has by name, where there is none of that name any more
	Admin            bool
	Services         string
	Since, Seen      *moment
	Plans            []choice
	Form             string
	Open             bool
	Kept, Problem    string // what was typed, and what is wrong with it
}

// A planAsked is what a form asked for that was not done. The zero value is that none was sent.
type planAsked struct {
	account, plan, reason string
	notDone
}

// adminAccounts serves GET /admin/accounts.
func (s *Server) adminAccounts(c echo.Context) error {
	return s.writeAccounts(c, http.StatusOK, planAsked{})
}

func (s *Server) writeAccounts(c echo.Context, status int, asked planAsked) error {
	accounts, list, next, err := s.readAccounts(c, "done")
	page := accountsPage{frame: s.adminFrame(c, "accounts"), Conflict: asked.conflict, Wallet: brief(strings.TrimSpace(c.QueryParam("wallet")), 64), Paged: list.cursor != ""}
	if no, ok := errors.AsType[*refusal.Error](err); ok && no.Reason == call.InvalidParameter && page.Wallet != "" {
		page.WalletProblem = upperFirst(noWallet) + "."
		return s.writePage(c, statusFor(no.Reason, false), adminAccountsTemplate, page)
	}
	if err != nil {
		return err
	}
	list.more.Del("done")
	page.First, page.Next = pagesOf("/admin/accounts", list, next)
	done := c.QueryParam("done")
	for _, a := range accounts {
		row := s.accountOnPageOf(a, asked)
		row.Form = page.Admin.Form
		if done != "" && done == row.ID {
			page.Done = "The account " + row.Wallet + " has the plan " + row.Plan + " now."
		}
		page.Rows = append(page.Rows, row)
	}
	return s.writePage(c, status, adminAccountsTemplate, page)
}

func (s *Server) accountOnPageOf(a identity.Account, asked planAsked) accountOnPage {
	has := s.store.Plans.Of(a.Plan)
	row := accountOnPage{ID: a.ID.String(), Wallet: a.Wallet.Hex(), Plan: plain(has.Title), Admin: a.Admin, Services: plural(a.Services, "service", "services"),
		Since: momentOf(a.CreatedAt), Seen: momentOf(a.LastSeenAt)}
	if a.Plan != "" && a.Plan != has.Name {
		row.Unknown = plain(a.Plan)
	}
	chosen := has.Name
	if asked.problem != "" && asked.account == row.ID {
		row.Open, row.Kept, row.Problem, chosen = true, plain(asked.reason), asked.problem, asked.plan
	}
	for _, p := range s.store.Plans {
		row.Plans = append(row.Plans, choice{ID: p.Name, Name: plain(p.Title), Chosen: p.Name == chosen})
	}
	return row
}

// adminSetPlan serves POST /admin/accounts. What was done is seen where it was done, as is why nothing was.
func (s *Server) adminSetPlan(c echo.Context) error {
	form, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	asked := planAsked{account: form.Get("account"), plan: form.Get("plan"), reason: strings.Join(strings.Fields(form.Get("reason")), " ")}
	set, err := s.planByForm(c, asked)
	if err == nil {
		return c.Redirect(http.StatusSeeOther, "/admin/accounts?"+url.Values{"wallet": {set.Wallet.Hex()}, "done": {set.ID.String()}}.Encode())
	}
	status, shown := asked.refused(err)
	if !shown {
		return err
	}
	return s.writeAccounts(c, status, asked)
}

func (s *Server) planByForm(c echo.Context, asked planAsked) (identity.Account, error) {
	id, err := uuid.Parse(asked.account)
	if err != nil {
		return identity.Account{}, refusal.New(call.NotFound, "there is no such account")
	}
	reason, err := reasonOf(&asked.reason)
	if err != nil {
		return identity.Account{}, err
	}
	return s.planTo(c, id, asked.plan, reason)
}
