package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/identity"
	"market/internal/refusal"
)

var adminAdminsTemplate = adminTemplate("admins")

// An adminsPage lists whose wallets are admins, and lets an admin change that.
type adminsPage struct {
	frame
	Done, Conflict string
	Token          bool // there is an admin token as well
	Form           string
	Rows           []adminOnPage
	Wallet, Kept   string // what was typed to make one
	Problem        string // and what is wrong with it
}

type adminOnPage struct {
	Wallet string
	State  badge
	On     bool
	Self   bool // it is who looks
	How    string
	Since  *moment
	Ended  string
	At     *moment
	Form   string
	Turn   string
	Title  string
	Button string

	Kept, Problem string
}

// A roleAsked is what a form asked for that was not done. The zero value is that none was sent.
type roleAsked struct {
	wallet, reason string
	on             bool
	notDone
}

// adminAdmins serves GET /admin/admins.
func (s *Server) adminAdmins(c echo.Context) error {
	return s.writeAdmins(c, http.StatusOK, roleAsked{})
}

func (s *Server) writeAdmins(c echo.Context, status int, asked roleAsked) error {
	admins, err := s.identities.Admins(c.Request().Context(), s.db)
	if err != nil {
		return err
	}
	page := adminsPage{frame: s.adminFrame(c, "admins"), Conflict: asked.conflict, Token: s.adminToken != ""}
	page.Form = page.Admin.Form
	known, done := false, c.QueryParam("done")
	for _, a := range admins {
		row := adminOnPageOf(a)
		row.Form, row.Self = page.Form, principalOf(c).Kind == identity.Session && principalOf(c).Wallet == a.Wallet
		if asked.problem != "" && row.Wallet == asked.wallet && row.On != asked.on {
			known, row.Kept, row.Problem = true, plain(asked.reason), asked.problem
		}
		if done != "" && done == row.Wallet {
			page.Done = row.Wallet + " is an admin now."
			if !row.On {
				page.Done = row.Wallet + " is no admin any more. The next request of its sessions is that of no admin."
			}
		}
		page.Rows = append(page.Rows, row)
	}
	if asked.problem != "" && !known {
		page.Wallet, page.Kept, page.Problem = brief(asked.wallet, 64), plain(asked.reason), asked.problem
	}
	return s.writePage(c, status, adminAdminsTemplate, page)
}

func adminOnPageOf(a identity.Admin) adminOnPage {
	row := adminOnPage{Wallet: a.Wallet.Hex(), On: a.RevokedAt.IsZero(), State: badge{"admin", "good"}, How: "made one by " + plain(a.GrantedBy), Since: momentOf(a.GrantedAt),
		Turn: "off", Title: "Take the role from it …", Button: "Take the role from it"}
	if !row.On {
		row.State, row.Turn, row.Title, row.Button = badge{"not any more", "bad"}, "on", "Make it an admin again …", "Make it an admin"
		row.Ended, row.At = plain(a.RevokedBy), momentOf(a.RevokedAt)
	}
	return row
}

// adminSetAdmin serves POST /admin/admins. What was done is seen where it was done, as is why nothing was. Who has taken the role from their own wallet
// is told so by the page that they are led to.
func (s *Server) adminSetAdmin(c echo.Context) error {
	form, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	asked := roleAsked{wallet: strings.TrimSpace(form.Get("wallet")), reason: strings.Join(strings.Fields(form.Get("reason")), " "), on: form.Get("on") == "on"}
	set, err := s.roleByForm(c, asked, form)
	if err == nil {
		return c.Redirect(http.StatusSeeOther, "/admin/admins?"+url.Values{"done": {set.Wallet.Hex()}}.Encode())
	}
	status, shown := asked.refused(err)
	if !shown {
		return err
	}
	return s.writeAdmins(c, status, asked)
}

func (s *Server) roleByForm(c echo.Context, asked roleAsked, form url.Values) (identity.Admin, error) {
	if !asked.on && form.Get("on") != "off" {
		return identity.Admin{}, refusal.New(call.NotFound, "there is no such decision")
	}
	wallet, err := readWallet(asked.wallet)
	if err != nil {
		return identity.Admin{}, err
	}
	reason, err := reasonOf(&asked.reason)
	if err != nil {
		return identity.Admin{}, err
	}
	return s.role(c, wallet, asked.on, reason)
}
