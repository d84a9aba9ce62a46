package server

import (
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/identity"
)

const (
	// adminFormBytesMax bounds what a form of the admin's pages sends.
	adminFormBytesMax = 64 << 10
	adminHome         = "/admin"
	sessionKey        = "session"
)

// A signInPage asks for the admin token. It stands at whatever address was asked for, and leads back there.
type signInPage struct {
	frame
	Off     bool   // no token is configured: nobody can sign in
	Next    string // where the form leads
	Problem string
}

// An adminBar is what stands above each page of an admin who is signed in.
type adminBar struct {
	Form string  // the token of the session's forms
	At   string  // which of the pages this is
	Ends *moment // of the session
}

// signedIn asks for an admin's session: by the token, or of a wallet that has the role now. Whoever has none gets the form at the same address. It adds
// to a page what an admin's page has on top of others.
func (s *Server) signedIn(next echo.HandlerFunc) echo.HandlerFunc {
	return s.privately(func(c echo.Context) error {
		if current, ok := s.sessionOf(c.Request()); ok {
			c.Set(sessionKey, pageSession{form: current.formToken(s.adminToken), ends: current.until})
			let(c, identity.Principal{Kind: identity.AdminToken, Admin: true}, catalog.ActorAdmin)
			return next(c)
		}
		p, current, ok, err := s.byCookie(c, s.walletAdminCookie())
		switch {
		case err != nil:
			return err
		case !ok:
			return s.askToSignIn(c)
		case !p.Admin:
			return s.writeAdminProblem(c, http.StatusForbidden, "This wallet is not an admin", "It was one when you signed in, and is not any more")
		}
		c.Set(sessionKey, current)
		let(c, p, catalog.ActorAdmin)
		return next(c)
	})
}

// privately keeps an address of the pages of admins and sellers from the scripts and search engines of others, and takes forms of ours only.
func (s *Server) privately(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Del("Access-Control-Allow-Origin")
		h.Del("Access-Control-Expose-Headers")
		h.Set("X-Robots-Tag", "noindex")
		// With no referrer at all, a browser would not say either where a form of ours comes from.
		h.Set("Referrer-Policy", "same-origin")
		if err := s.ourForms.Check(c.Request()); err != nil {
			return s.writeAdminProblem(c, http.StatusForbidden, "This did not come from a page of ours",
				"Your browser says that another site sent it. Open the page again and send its form from there")
		}
		return next(c)
	}
}

// formOf reads a form, which has to carry the token of the session. False: it was answered with a page.
func (s *Server) formOf(c echo.Context) (url.Values, bool, error) {
	return s.formUpTo(c, adminFormBytesMax)
}

func (s *Server) formUpTo(c echo.Context, bytesMax int64) (url.Values, bool, error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, bytesMax)
	if err := r.ParseForm(); err != nil {
		return nil, false, s.writeAdminProblem(c, http.StatusBadRequest, "This form cannot be read", "It did not arrive whole, or is larger than a form of ours")
	}
	if current, ok := c.Get(sessionKey).(pageSession); ok && !sameSecret(r.PostForm.Get("form"), current.form) {
		return nil, false, s.writeAdminProblem(c, http.StatusForbidden, "This form is of another sign-in", "Nothing was changed. Open the page again and send its form from there")
	}
	return r.PostForm, true, nil
}

func (s *Server) sessionOf(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(s.sessionCookie())
	if err != nil {
		return session{}, false
	}
	return readSession(cookie.Value, s.adminToken, s.now())
}

// overHTTP says that a developer's browser talks to us without encryption.
func (s *Server) overHTTP() bool { return s.dev && strings.HasPrefix(s.publicURL, "http://") }

// sessionCookie is the name of the cookie of a session by the admin token.
func (s *Server) sessionCookie() string { return s.cookieName("market-admin") }

// setSession has the browser keep a session, or forget it where value is empty. It is sent to the admin's pages only, and so never with a call.
func (s *Server) setSession(c echo.Context, value string, keep time.Duration) {
	s.setCookie(c, s.sessionCookie(), adminHome, value, keep)
}

// signIn serves POST /admin/session.
func (s *Server) signIn(c echo.Context) error {
	if s.adminToken == "" {
		return s.writeOff(c)
	}
	form, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	next := safeNext(form.Get("next"))
	source, _ := sourceOf(c.Request(), s.proxies)
	from := call.Network(source)
	if wait := s.tries.take(from, s.now()); wait > 0 {
		setRetryAfter(c.Response().Header(), wait)
		minutes := strconv.Itoa(int(wait.Minutes()) + 1)
		return s.writeSignIn(c, http.StatusTooManyRequests, next, "Too many tries from your network. Try again in "+minutes+" min; the API and the commands work meanwhile.")
	}
	if !sameSecret(strings.TrimSpace(form.Get("token")), s.adminToken) {
		return s.writeSignIn(c, http.StatusUnauthorized, next, "This is not the admin token.")
	}
	s.tries.right(from)
	s.setSession(c, openSession(s.now()).value(s.adminToken), sessionTime)
	return c.Redirect(http.StatusSeeOther, next)
}

// signOut serves POST /admin/session/end.
func (s *Server) signOut(c echo.Context) error {
	if _, ok, err := s.formOf(c); !ok {
		return err
	}
	// Both ways of being signed in end: with one of them left, the next page would show that it was no sign-out.
	s.setSession(c, "", 0)
	if _, err := c.Request().Cookie(s.walletAdminCookie()); err == nil {
		if err := s.endSession(c); err != nil {
			return err
		}
	}
	return c.Redirect(http.StatusSeeOther, adminHome)
}

func (s *Server) writeSignIn(c echo.Context, status int, next, problem string) error {
	c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="market"`)
	return s.writePage(c, status, signInTemplate, signInPage{frame: s.adminFrame(c, ""), Next: next, Problem: problem})
}

// writeOff stands for the form where no token is configured: a wallet that is an admin signs in at the pages of sellers.
func (s *Server) writeOff(c echo.Context) error {
	return s.writePage(c, http.StatusNotFound, signInTemplate, signInPage{frame: s.adminFrame(c, ""), Off: true})
}

// askToSignIn stands for a page that only an admin sees, or for what a form of it would have done.
func (s *Server) askToSignIn(c echo.Context) error {
	if s.adminToken == "" {
		return s.writeOff(c)
	}
	if r := c.Request(); r.Method == http.MethodPost {
		return s.writeSignIn(c, http.StatusUnauthorized, safeNext(r.URL.Path), "You are not signed in any more, so nothing was changed.")
	}
	return s.writeSignIn(c, http.StatusUnauthorized, safeNext(c.Request().URL.RequestURI()), "")
}

// safeNext is an address among the admin's pages: what comes from a form may be anybody's.
func safeNext(next string) string {
	to, err := url.ParseRequestURI(next)
	if err != nil || to.Scheme != "" || to.Host != "" || path.Clean(to.Path) != to.Path || !strings.HasPrefix(to.Path, adminHome+"/") ||
		strings.HasPrefix(to.Path, adminHome+"/session") {
		return adminHome
	}
	return to.RequestURI()
}

// adminFrame is the frame of an admin's page. at names it in the bar.
func (s *Server) adminFrame(c echo.Context, at string) frame {
	f := s.frame()
	f.Unlisted, f.Searching = true, true
	if current, ok := c.Get(sessionKey).(pageSession); ok && principalOf(c).Admin {
		f.Admin = &adminBar{Form: current.form, At: at, Ends: momentOf(current.ends)}
	}
	return f
}

// writeAdminProblem tells an admin or a seller in words why something was not done. The page ends the detail with a full stop, as it does that of a refusal.
func (s *Server) writeAdminProblem(c echo.Context, status int, headline, detail string) error {
	page := problemPage{frame: s.adminFrame(c, ""), Status: strconv.Itoa(status), Headline: headline, Detail: detail,
		Next: "Go back to the admin's pages, and look at what is there now."}
	if forAccounts(c) {
		page.frame, page.Next = s.accountFrame(c, ""), "Go back to your services, and look at what is there now."
	}
	return s.writePage(c, status, problemTemplate, page)
}

var signInTemplate = adminTemplate("signin")

// ourForms lets a browser send forms from our own pages only. Behind a proxy that changes the host, ours is the public address.
func ourForms(publicURL string) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if at, err := url.Parse(publicURL); err == nil && at.Host != "" {
		_ = p.AddTrustedOrigin(at.Scheme + "://" + at.Host) // it is a scheme and a host
	}
	return p
}
