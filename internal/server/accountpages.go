package server

import (
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"market/internal/identity"
	"market/web"
)

// accountFormBytesMax bounds what a form of a seller sends: a listing with its schemas and examples, as the API takes it, and what forms add to it.
const accountFormBytesMax = 2 * bodyMax

// accountPageRoutes are the pages of sellers. They show what the API tells, and change by what it calls.
func (s *Server) accountPageRoutes() []route {
	const service = accountHome + "/services/:slug"
	all := pages([]route{
		{"", signInPath, accountDoor, "", s.accountSignIn},
		{"", accountHome, accountPage, "", s.accountOverview},
		{"", accountHome + "/calls", accountPage, "", s.accountCalls},
		{"", accountHome + "/calls.csv", accountPage, "", s.accountCallsFile},
		{"", accountEarningsPath, accountPage, "", s.accountEarnings},
		{"", accountHome + "/payouts/:id", accountPage, "", s.accountPayout},
		{"", accountHome + "/payouts/:id/statement.csv", accountPage, "", s.accountPayoutFile},
		{"", accountHome + "/keys", accountPage, "", s.accountKeys},
		{"", accountHome + "/services/new", accountPage, "", s.accountNew},
		{"", service, accountPage, "", s.accountService},
		{"", service + "/edit", accountPage, "", s.accountEdit},
		{"", service + "/headers", accountPage, "", s.accountHeaders},
		{"", service + "/endpoints/new", accountPage, "", s.accountNewEndpoint},
		{"", service + "/endpoints/:id", accountPage, "", s.accountEndpoint},
	})
	for _, r := range []route{
		{"", accountHome + "/challenge", accountDoor, "", s.accountChallenge},
		{"", accountHome + "/session", accountDoor, "", s.accountSession},
		{"", accountHome + "/session/end", accountPage, "", s.accountSignOut},
		{"", accountEarningsPath, accountPage, "", s.accountDrawEarnings},
		{"", accountHome + "/keys", accountPage, "", s.accountMakeKey},
		{"", accountHome + "/keys/:id/revoke", accountPage, "", s.accountRevokeKey},
		{"", accountHome + "/services/new", accountPage, "", s.accountCreate},
		{"", service + "/edit", accountPage, "", s.accountChange},
		{"", service + "/retire", accountPage, "", s.accountRetire},
		{"", service + "/headers", accountPage, "", s.accountSetHeaders},
		{"", service + "/secret", accountPage, "", s.accountSecret},
		{"", service + "/endpoints/new", accountPage, "", s.accountAddEndpoint},
		{"", service + "/endpoints/:id", accountPage, "", s.accountChangeEndpoint},
		{"", service + "/endpoints/:id/retire", accountPage, "", s.accountRetireEndpoint},
		{"", service + "/appeals", accountPage, "", s.accountAppeal},
		{"", service + "/notices/secret", accountPage, "", s.accountNoticeSecret},
		{"", service + "/notices/:id/resend", accountPage, "", s.accountResend},
	} {
		r.method = http.MethodPost
		all = append(all, r)
	}
	return all
}

// accountTemplate is a page of sellers, with the parts that those share.
func accountTemplate(name string) *template.Template {
	return template.Must(template.ParseFS(web.Templates, "templates/layout.html", "templates/accountparts.html", "templates/account"+name+".html"))
}

// An accountBar is what stands above each page of a seller who is signed in.
type accountBar struct {
	Form  string // the token of the session's forms
	At    string // which of the pages this is
	Short string // the wallet, shortened
	Admin bool   // the wallet is an admin's now
}

// accountFrame is the frame of a seller's page. at names it in the bar.
func (s *Server) accountFrame(c echo.Context, at string) frame {
	f := s.frame()
	f.Unlisted, f.Searching = true, true
	if current, ok := c.Get(sessionKey).(pageSession); ok {
		p := principalOf(c)
		f.Account = &accountBar{Form: current.form, At: at, Short: shortWallet(p.Wallet), Admin: p.Admin}
	}
	return f
}

func shortWallet(a common.Address) string {
	text := a.Hex()
	return text[:6] + "…" + text[len(text)-4:]
}

// forAccounts says whether an address is one of the sellers' pages.
func forAccounts(c echo.Context) bool {
	at := c.Request().URL.Path
	return at == accountHome || strings.HasPrefix(at, accountHome+"/")
}

// accountFormOf reads a form of a seller who is signed in. False: it was answered with a page.
func (s *Server) accountFormOf(c echo.Context) (url.Values, bool, error) {
	return s.formUpTo(c, accountFormBytesMax)
}

// safeAccountNext is an address among the sellers' pages: what comes from a form or a link may be anybody's.
func safeAccountNext(next string) string {
	to, err := url.ParseRequestURI(next)
	if err != nil || to.Scheme != "" || to.Host != "" || path.Clean(to.Path) != to.Path || !strings.HasPrefix(to.Path, accountHome+"/") ||
		strings.HasPrefix(to.Path, accountHome+"/session") || to.Path == signInPath || to.Path == accountHome+"/challenge" {
		return accountHome
	}
	return to.RequestURI()
}

// askSellerToSignIn stands for a page of a seller who is not signed in, or for what a form of it would have done.
func (s *Server) askSellerToSignIn(c echo.Context) error {
	at := url.Values{}
	if r := c.Request(); r.Method == http.MethodPost {
		at.Set("why", "ended")
	} else if next := safeAccountNext(r.URL.RequestURI()); next != accountHome {
		at.Set("next", next)
	}
	to := signInPath
	if len(at) > 0 {
		to += "?" + at.Encode()
	}
	return c.Redirect(http.StatusSeeOther, to)
}

// accountSignOut serves POST /account/session/end.
func (s *Server) accountSignOut(c echo.Context) error {
	if _, ok, err := s.accountFormOf(c); !ok {
		return err
	}
	if err := s.endSession(c); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, signInPath+"?why=out")
}

// scopesOf are the words of scopes.
func scopesOf(scopes []identity.Scope) []string {
	words := make([]string, 0, len(scopes))
	for _, scope := range scopes {
		words = append(words, string(scope))
	}
	return words
}
