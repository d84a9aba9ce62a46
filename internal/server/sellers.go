package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/identity"
	"market/internal/refusal"
)

// accountHome is where the pages of sellers begin.
const accountHome = "/account"

// A pageSession is the sign-in by which somebody sees a page: of an admin by the token, or of a wallet.
type pageSession struct {
	form  string // what its forms carry
	ends  time.Time
	token string // of a wallet's session; empty: by the admin token
}

// walletForm is what the forms of a wallet's session carry. It is made of the session's token, which only its browser has, and tells nothing of it.
func walletForm(token string) string {
	mac := hmac.New(sha256.New, []byte("market account\n"+token))
	_, _ = mac.Write([]byte("form")) // a hash takes everything
	return sessionText.EncodeToString(mac.Sum(nil))
}

// Names of the cookies that carry a wallet's session. There are two, so that neither is sent to the pages of the other, nor with a call.
func (s *Server) accountCookie() string     { return s.cookieName("market-account") }
func (s *Server) walletAdminCookie() string { return s.cookieName("market-wallet-admin") }

// cookieName has browsers take a cookie over https only.
func (s *Server) cookieName(name string) string {
	if s.overHTTP() {
		return name
	}
	return "__Secure-" + name
}

// setCookie has the browser keep a value for the pages below a path, or forget it where value is empty.
func (s *Server) setCookie(c echo.Context, name, path, value string, keep time.Duration) {
	seconds := int(keep.Seconds())
	if value == "" {
		seconds = -1
	}
	c.SetCookie(&http.Cookie{Name: name, Value: value, Path: path, MaxAge: seconds, HttpOnly: true, Secure: !s.overHTTP(), SameSite: http.SameSiteStrictMode})
}

// keepSession has the browser keep a wallet's session that was opened just now: for the pages of sellers, and where the wallet is an admin for those of
// admins, too. Whether it is one is read again with each request. What the browser had of another sign-in ends: nobody is two wallets, one of them on
// the pages where it is not seen.
func (s *Server) keepSession(c echo.Context, opened identity.Opened) error {
	if err := s.endCookies(c); err != nil {
		return err
	}
	token, admins := opened.Token.Reveal(), ""
	if opened.Account.Admin {
		admins = token
	}
	s.setCookie(c, s.accountCookie(), accountHome, token, identity.SessionTime)
	s.setCookie(c, s.walletAdminCookie(), adminHome, admins, identity.SessionTime)
	return nil
}

// endSession ends the wallet's sessions of the browser, for good, and has it forget them.
func (s *Server) endSession(c echo.Context) error {
	s.setCookie(c, s.accountCookie(), accountHome, "", 0)
	s.setCookie(c, s.walletAdminCookie(), adminHome, "", 0)
	return s.endCookies(c)
}

// endCookies ends the wallet's sessions that a request carries as cookies. A browser sends one of them: which one goes by the page.
func (s *Server) endCookies(c echo.Context) error {
	ctx := c.Request().Context()
	for _, name := range []string{s.accountCookie(), s.walletAdminCookie()} {
		cookie, err := c.Request().Cookie(name)
		if err != nil {
			continue // there is none
		}
		p, ok, err := s.identities.OfSession(ctx, s.db, cookie.Value)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		as := catalog.ActorOwner
		if name == s.walletAdminCookie() && p.Admin {
			as = catalog.ActorAdmin
		}
		if err := s.end(ctx, p, catalog.Author{Actor: as, Name: walletName(p.Wallet)}, cookie.Value); err != nil {
			return err
		}
	}
	return nil
}

// byCookie reads who has the wallet's session of a cookie; false where there is none that is good now.
func (s *Server) byCookie(c echo.Context, name string) (identity.Principal, pageSession, bool, error) {
	cookie, err := c.Request().Cookie(name)
	if err != nil {
		return identity.Principal{}, pageSession{}, false, nil
	}
	ctx := c.Request().Context()
	p, ok, err := s.identities.OfSession(ctx, s.db, cookie.Value)
	if err != nil || !ok {
		return identity.Principal{}, pageSession{}, false, err
	}
	if err := s.identities.Saw(ctx, s.db, p.Account, s.seenAt(c.Request())); err != nil {
		return identity.Principal{}, pageSession{}, false, err
	}
	return p, pageSession{form: walletForm(cookie.Value), ends: p.Expires, token: cookie.Value}, true, nil
}

// sellerSignedIn asks for the session of a wallet, and at the pages of a service for that of its owner. Whoever has none is led to the sign-in.
func (s *Server) sellerSignedIn(next echo.HandlerFunc) echo.HandlerFunc {
	return s.privately(func(c echo.Context) error {
		p, current, ok, err := s.byCookie(c, s.accountCookie())
		if err != nil {
			return err
		}
		if !ok {
			return s.askSellerToSignIn(c)
		}
		c.Set(sessionKey, current)
		let(c, p, catalog.ActorOwner)
		if slug := c.Param("slug"); slug != "" {
			of, err := s.store.OwnerOf(c.Request().Context(), s.db, slug)
			switch {
			case err != nil:
				return err
			case !p.Owns(of):
				return refusal.New(call.Forbidden, "the service is another account's")
			}
		}
		return next(c)
	})
}
