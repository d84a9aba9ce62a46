package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/identity"
	"market/internal/refusal"
)

// An access says who may use a route. It stands with each route of the table, and nothing is served that has none.
type access int

const (
	_ access = iota // a route that nobody decided about

	// Of the API. A credential is a bearer token: nothing that a browser sends by itself, and no other header, says who asks.
	anyone  // nobody is asked who they are
	reader  // anyone; the owner of :slug and admins are told more
	account // of an account, for itself: by a session, or by a key with the route's scope
	seller  // as account, and the admin token, which lists for the operator
	owner   // of the service :slug, by a session or a key with the route's scope; and admins
	admin   // by the admin token, or by a session whose wallet has the role now

	// Of pages. A credential is a cookie.
	visitor     // anyone
	adminDoor   // the sign-in to the admin's pages: anyone, by forms of ours
	adminPage   // an admin who signed in with the token, or with a wallet that has the role now
	accountDoor // the sign-in of sellers: anyone, by forms of ours
	accountPage // an account that signed in, and at the pages of a service :slug its owner

	accessEnd // keep last
)

// A route is one address of the public door.
type route struct {
	method, path string
	access       access
	scope        identity.Scope // that a key needs here; empty: no key will do
	handler      echo.HandlerFunc
}

// Keys of what is known of a request.
const (
	principalKey = "principal"
	authorKey    = "author"
)

// principalOf is who asks; the zero value is nobody. It is known where the access of the route asks for it.
func principalOf(c echo.Context) identity.Principal {
	p, _ := c.Get(principalKey).(identity.Principal)
	return p
}

// authorOf is under whose name a change is kept: the owner of what is changed, or an admin. It is nobody where nobody was asked for.
func authorOf(c echo.Context) catalog.Author {
	a, _ := c.Get(authorKey).(catalog.Author)
	return a
}

// let puts who asks into the context of a request.
func let(c echo.Context, p identity.Principal, as catalog.Actor) {
	c.Set(principalKey, p)
	switch {
	case p.Kind == identity.AdminToken:
		c.Set(authorKey, catalog.AdminToken)
	case p.Kind != identity.Nobody:
		c.Set(authorKey, catalog.Author{Actor: as, Name: walletName(p.Wallet)})
	}
}

// walletName is the name of a wallet as an author.
func walletName(of common.Address) string { return "wallet " + of.Hex() }

// guarded puts before a route what its access asks for.
func (s *Server) guarded(r route) echo.HandlerFunc {
	switch r.access {
	case account, seller, owner, admin, adminPage, accountPage:
		r.handler = s.bounded(r)
		return arrived(r, s.asked(r))
	case anyone, visitor, reader, adminDoor, accountDoor, accessEnd:
	}
	return s.asked(r)
}

// asked puts before a route that it is asked who somebody is.
func (s *Server) asked(r route) echo.HandlerFunc {
	switch r.access {
	case anyone, visitor:
		return r.handler
	case reader:
		return s.forReader(r)
	case account, seller:
		return s.forAccount(r)
	case owner:
		return s.forOwner(r)
	case admin:
		return s.forAdmin(r)
	case adminDoor:
		return s.privately(r.handler)
	case adminPage:
		return s.signedIn(r.handler)
	case accountDoor:
		return s.privately(r.handler)
	case accountPage:
		return s.sellerSignedIn(r.handler)
	case accessEnd:
	}
	panic("a route that nobody decided about: " + r.method + " " + r.path)
}

func (s *Server) forReader(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		if bearerOf(c) == "" {
			return r.handler(c)
		}
		p, err := s.whoIs(c)
		if err != nil {
			if no := refusalOf(err); no.Reason == call.Internal {
				return err
			}
			c.Response().Header().Del(echo.HeaderWWWAuthenticate)
			return r.handler(c) // whoever shows us something else is a stranger
		}
		if p.Kind == identity.AdminToken {
			let(c, p, catalog.ActorAdmin)
			return r.handler(c)
		}
		of, err := s.store.OwnerOf(c.Request().Context(), s.db, c.Param("slug"))
		if err != nil {
			return err
		}
		switch {
		case p.Owns(of) && p.May(r.scope):
			let(c, p, catalog.ActorOwner)
		case p.Admin:
			let(c, p, catalog.ActorAdmin)
		}
		return r.handler(c)
	}
}

func (s *Server) forAccount(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		p, err := s.whoIs(c)
		if err != nil {
			return err
		}
		switch {
		case p.Kind == identity.AdminToken && r.access == seller:
		case p.Kind == identity.AdminToken:
			return refusal.New(call.Forbidden, "the admin token is of no account: sign in with a wallet")
		case !p.May(r.scope):
			return lacks(r.scope)
		}
		let(c, p, catalog.ActorOwner)
		return r.handler(c)
	}
}

func (s *Server) forOwner(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		p, err := s.whoIs(c)
		if err != nil {
			return err
		}
		switch {
		case p.Kind == identity.AdminToken:
			let(c, p, catalog.ActorAdmin)
			return r.handler(c)
		case !p.May(r.scope):
			return lacks(r.scope)
		}
		of, err := s.store.OwnerOf(c.Request().Context(), s.db, c.Param("slug"))
		switch {
		case err != nil:
			return err
		case p.Owns(of):
			let(c, p, catalog.ActorOwner)
		case p.Admin:
			let(c, p, catalog.ActorAdmin)
		default:
			return refusal.New(call.Forbidden, "the service is another account's")
		}
		return r.handler(c)
	}
}

func (s *Server) forAdmin(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		p, err := s.whoIs(c)
		if err != nil {
			return err
		}
		if !p.Admin {
			return refusal.New(call.Forbidden, "this is for admins: the admin token, or a session of a wallet that is an admin now")
		}
		let(c, p, catalog.ActorAdmin)
		return r.handler(c)
	}
}

func lacks(scope identity.Scope) error {
	if scope == "" {
		return refusal.New(call.Forbidden, "no API key will do here: sign in with the wallet")
	}
	return refusal.New(call.Forbidden, "the API key was not made for this: it needs the scope %s", scope)
}

// whoIs reads the credential of a request. The error is a refusal where there is none, or none that is good now.
func (s *Server) whoIs(c echo.Context) (identity.Principal, error) {
	token := bearerOf(c)
	if token == "" {
		return identity.Principal{}, s.unauthorized(c, "this needs a credential: Authorization: Bearer …")
	}
	if s.adminToken != "" && sameSecret(token, s.adminToken) {
		return identity.Principal{Kind: identity.AdminToken, Admin: true}, nil
	}
	ctx := c.Request().Context()
	source, _ := sourceOf(c.Request(), s.proxies)
	from := call.Network(source)
	digest := sha256.Sum256([]byte(token))
	if wait := s.badTokens.full(from, s.now()); wait > 0 && !s.goodTokens.has(digest, s.now()) {
		return identity.Principal{}, refusal.New(call.TooMany, "too many wrong tokens from your network").WithUntil(s.now().Add(wait))
	}
	var p identity.Principal
	var ok bool
	var err error
	switch identity.KindOf(token) {
	case identity.Session:
		p, ok, err = s.identities.OfSession(ctx, s.db, token)
	case identity.Key:
		p, ok, err = s.identities.OfKey(ctx, s.db, token)
	case identity.AdminToken, identity.Nobody:
	}
	if err != nil {
		return identity.Principal{}, err
	}
	if !ok {
		s.badTokens.take(from, s.now())
		return identity.Principal{}, s.unauthorized(c, "the token is none of ours, or it has ended")
	}
	s.goodTokens.note(digest, s.now())
	// A key that only reads may be with somebody else, whose calls are not those of the provider.
	if p.May(identity.ServicesWrite) {
		if err := s.identities.Saw(ctx, s.db, p.Account, s.seenAt(c.Request())); err != nil {
			return identity.Principal{}, err
		}
	}
	return p, nil
}

func (s *Server) unauthorized(c echo.Context, why string) error {
	c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="market"`)
	return refusal.New(call.Unauthorized, "%s", why)
}

// bearerOf is the token of a request; empty where it has none, or two.
func bearerOf(c echo.Context) string {
	values := c.Request().Header.Values(echo.HeaderAuthorization)
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// seesAll says whether a request is that of the owner of the service that it reads, or of an admin.
func seesAll(c echo.Context) bool { return principalOf(c).Kind != identity.Nobody }

// ownerFor is the account that somebody lists a service for; zero for the operator.
func ownerFor(c echo.Context) uuid.UUID { return principalOf(c).Account }

// sameSecret compares digests, so that neither the time nor the length tells anything.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
