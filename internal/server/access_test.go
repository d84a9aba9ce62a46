package server

import (
	"crypto/ecdsa"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/identity"
	"market/internal/postgres/pgtest"
	"market/internal/secretbox"
)

func TestTable_IsAllThatIsServedAndEveryRouteWasDecidedAbout(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	var served, listed, known []string
	for _, r := range s.routes().Routes() {
		served = append(served, r.Method+" "+r.Path)
	}
	for _, r := range s.table() {
		name := r.method + " " + r.path
		if slices.Contains(listed, name) {
			t.Errorf("%s stands there twice", name)
		}
		listed = append(listed, name)
		want, ok := decided[name]
		if !ok {
			t.Errorf("%s is new: say in decided who may use it", name)
		} else if r.access != want.access || r.scope != want.scope {
			t.Errorf("%s has access %d and scope %q, and access %d and scope %q were decided", name, r.access, r.scope, want.access, want.scope)
		}
	}
	for name := range decided {
		known = append(known, name)
	}
	if gone := without(known, listed); len(gone) > 0 {
		t.Errorf("decided about and not in the table: %q", gone)
	}
	if past := without(served, listed); len(past) > 0 {
		t.Errorf("served past the table: %q", past)
	}
}

// A route with an access that nobody wrote down is not served at all.
func TestGuarded_ARouteWithoutAccessIsNotServed(t *testing.T) {
	t.Parallel()
	for _, none := range []access{0, accessEnd} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("access %d is guarded by something", none)
				}
			}()
			newTestServer().guarded(route{http.MethodGet, "/x", none, "", nil})
		}()
	}
}

// A house is a server over a database in which somebody sells, and somebody else does.
type house struct {
	*Server
	db    *pgxpool.Pool
	owner identity.Account // of the service weather
	at    time.Time
}

func newHouse(t *testing.T) *house {
	t.Helper()
	db := pgtest.New(t)
	h := &house{db: db, at: time.Unix(1_800_000_000, 0)}
	h.Server = New(Config{
		PublicURL: "https://shop.example", AdminToken: signInToken, Log: zerolog.Nop(), Now: func() time.Time { return h.at }, DB: db,
		SignIns: &identity.SignIns{Domain: "shop.example", Origin: "https://shop.example", ChainIDs: []uint64{8453}, Box: secretbox.RandomBox()},
	})
	return h
}

// entered is a wallet that signed in.
func (h *house) entered(t *testing.T, key *ecdsa.PrivateKey) identity.Opened {
	t.Helper()
	made, err := h.signIns.Challenge(t.Context(), h.db, identity.ChallengeDraft{Wallet: crypto.PubkeyToAddress(key.PublicKey)})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := crypto.Sign(accounts.TextHash([]byte(made.Message)), key)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := h.signIns.SignIn(t.Context(), h.db, identity.SignInDraft{Message: made.Message, Signature: signature}, netip.MustParseAddr("192.0.2.7"))
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func (h *house) key(t *testing.T, of uuid.UUID, scopes ...identity.Scope) (token string, id uuid.UUID) {
	t.Helper()
	tx, err := h.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // committed below
	made, secret, err := h.identities.NewKey(t.Context(), tx, of, identity.KeyDraft{Name: "of a test", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return secret.Reveal(), made.ID
}

func (h *house) sell(t *testing.T, slug string, of uuid.UUID) catalog.Service {
	t.Helper()
	draft, err := catalog.ParseDraft([]byte(`{"slug": "`+slug+`", "name": "Weather", "base_url": "https://api.example", "probe": {"path": "/healthz", "statuses": ["204"]},
		"endpoints": [{"method": "POST", "path": "/v1/current", "price_usd": "0.002", "description": "Weather"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	draft.By, draft.Owner = catalog.Author{Actor: catalog.ActorOwner, Name: "wallet"}, of
	var made catalog.Service
	if err := pgx.BeginFunc(t.Context(), h.db, func(tx pgx.Tx) error {
		made, err = h.store.Create(t.Context(), tx, draft)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return made
}

// A visit is what somebody shows who asks.
type visit struct {
	bearer string
	cookie [2]string // name and value
	header [2]string
}

func newWallet(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// callers are every kind of somebody who asks, by what they show.
func (h *house) callers(t *testing.T) map[string]visit {
	t.Helper()
	ctx := t.Context()
	must := func(_ bool, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if tag, err := h.db.Exec(ctx, sql, args...); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v, %v", sql, tag, err)
		}
	}
	ownerKey, otherKey, adminKey, demotedKey := newWallet(t), newWallet(t), newWallet(t), newWallet(t)
	own, other := h.entered(t, ownerKey), h.entered(t, otherKey)
	h.owner = own.Account
	h.sell(t, "weather", own.Account.ID)
	h.sell(t, "elsewhere", other.Account.ID)
	must(h.identities.Grant(ctx, h.db, crypto.PubkeyToAddress(adminKey.PublicKey), "admin token"))
	must(h.identities.Grant(ctx, h.db, crypto.PubkeyToAddress(demotedKey.PublicKey), "admin token"))
	chief, demoted := h.entered(t, adminKey), h.entered(t, demotedKey)
	must(h.identities.Revoke(ctx, h.db, demoted.Account.Wallet, "admin token"))

	ended, expired := h.entered(t, ownerKey), h.entered(t, ownerKey)
	must(h.identities.EndSession(ctx, h.db, ended.Token.Reveal()))
	exec(`UPDATE sessions SET created_at = market_now() - interval '9 hours', expires_at = market_now() WHERE token_hash = sha256($1)`, []byte(expired.Token.Reveal()))
	revoked, revokedID := h.key(t, own.Account.ID, identity.Scopes()...)
	exec(`UPDATE api_keys SET revoked_at = market_now() WHERE id = $1`, revokedID)
	past, pastID := h.key(t, own.Account.ID, identity.Scopes()...)
	exec(`UPDATE api_keys SET expires_at = market_now() WHERE id = $1`, pastID)

	account, admin := h.accountCookie(), h.walletAdminCookie()
	all := map[string]visit{
		"nobody":                  {},
		"a wrong token":           {bearer: "mkses_" + strings.Repeat("A", 43)},
		"a token of another form": {bearer: "a-token-of-nobody"},
		"a session as a cookie":   {cookie: [2]string{account, own.Token.Reveal()}},
		"the owner":               {bearer: own.Token.Reveal()},
		"another provider":        {bearer: other.Token.Reveal()},
		"an admin by the token":   {bearer: signInToken},
		"an admin by a wallet":    {bearer: chief.Token.Reveal()},
		"a demoted admin":         {bearer: demoted.Token.Reveal()},
		"an ended session":        {bearer: ended.Token.Reveal()},
		"an expired session":      {bearer: expired.Token.Reveal()},
		"a revoked key":           {bearer: revoked},
		"an expired key":          {bearer: past},

		"a page by the token":           {cookie: [2]string{h.sessionCookie(), openSession(h.at).value(signInToken)}},
		"a page by an admin's wallet":   {cookie: [2]string{admin, chief.Token.Reveal()}},
		"a page by a demoted admin":     {cookie: [2]string{admin, demoted.Token.Reveal()}},
		"a page by a seller as admin":   {cookie: [2]string{admin, own.Token.Reveal()}},
		"a page by an ended session":    {cookie: [2]string{admin, ended.Token.Reveal()}},
		"a page by an ended seller":     {cookie: [2]string{account, ended.Token.Reveal()}},
		"a page by the token as wallet": {cookie: [2]string{admin, signInToken}},
	}
	keyOf := func(name string, of uuid.UUID, scopes ...identity.Scope) {
		token, _ := h.key(t, of, scopes...)
		all[name] = visit{bearer: token}
	}
	for _, scope := range identity.Scopes() {
		keyOf("the owner's key for "+string(scope), own.Account.ID, scope)
	}
	keyOf("another provider's key", other.Account.ID, identity.Scopes()...)
	keyOf("an admin's key", chief.Account.ID, identity.Scopes()...)
	// B152: a proxy in front that says who somebody is is not asked for, and so not believed.
	for _, header := range [][2]string{{"X-Forwarded-User", "admin"}, {"X-Forwarded-Email", "admin@shop.example"}, {"X-Remote-User", "admin"}, {"Remote-User", "admin"},
		{"X-Real-Ip", "127.0.0.1"}, {"X-Forwarded-For", "127.0.0.1"}, {"Forwarded", "for=127.0.0.1"}, {"X-Wallet", own.Account.Wallet.Hex()}, {"X-Api-Key", signInToken},
		{"X-Auth-Request-User", "admin"}, {"X-Original-Url", "/api/v1/rules"}, {"X-Http-Method-Override", "GET"}} {
		all["nobody with "+header[0]] = visit{header: header}
	}
	return all
}

const (
	reached = 0
	asked   = http.StatusUnauthorized // for a credential
	denied  = http.StatusForbidden
	led     = http.StatusSeeOther // to the sign-in
)

// allowed says what becomes of a caller at a route: written here from what is promised, and not from how it is done.
func allowed(name string, to access, scope identity.Scope) int {
	scoped, isKey := strings.CutPrefix(name, "the owner's key for ")
	live := isKey || slices.Contains([]string{"the owner", "another provider", "a demoted admin", "an admin by a wallet", "another provider's key", "an admin's key"}, name)
	anyKey := isKey || strings.HasSuffix(name, "'s key")
	fits := !anyKey || scope != "" && (!isKey || identity.Scope(scoped) == scope)
	byToken := name == "an admin by the token"
	anAdmin := byToken || name == "an admin by a wallet"
	switch to {
	case anyone, visitor, reader, adminDoor, accountDoor:
		return reached
	case account, seller:
		switch {
		case byToken && to == seller:
			return reached
		case byToken || live && !fits:
			return denied
		case live:
			return reached
		}
	case owner:
		switch {
		case anAdmin || (name == "the owner" || isKey) && fits:
			return reached
		case live:
			return denied
		}
	case admin:
		switch {
		case anAdmin:
			return reached
		case live:
			return denied
		}
	case adminPage:
		switch name {
		case "a page by the token", "a page by an admin's wallet":
			return reached
		case "a page by a demoted admin", "a page by a seller as admin":
			return denied
		}
	case accountPage:
		if name == "a session as a cookie" {
			return reached
		}
		return led
	case accessEnd:
	}
	return asked
}

// B148: whoever was an admin is refused with the next request, whatever it got before. B152: no header says who somebody is.
func TestAccess_EveryRouteByEveryKindOfCaller(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	callers := h.callers(t)
	h.badTokens.max, h.writes.max = 1_000_000, 1_000_000
	for _, r := range h.table() {
		var who identity.Principal
		var by catalog.Author
		served := false
		stub := r
		stub.handler = func(c echo.Context) error {
			served, who, by = true, principalOf(c), authorOf(c)
			return c.NoContent(http.StatusTeapot)
		}
		e := echo.New()
		e.HTTPErrorHandler = h.writeError
		e.Add(r.method, r.path, h.guarded(stub))
		address := strings.NewReplacer(":slug", "weather", ":id", call.NewID().String(), ":name", "api.md", "*", "weather/v1/current").Replace(r.path)
		for name, v := range callers {
			served, who, by = false, identity.Principal{}, catalog.Author{}
			answer := httptest.NewRecorder()
			e.ServeHTTP(answer, v.request(r.method, address))
			want := allowed(name, r.access, r.scope)
			if served != (want == reached) || !served && answer.Code != want {
				t.Errorf("%s %s by %s: reached %v, status %d, want %d", r.method, r.path, name, served, answer.Code, want)
			}
			if served {
				h.checkAuthor(t, fmt.Sprintf("%s %s by %s", r.method, r.path, name), r, name, who, by)
			}
		}
	}
}

// checkAuthor looks at whose name a change would carry.
func (h *house) checkAuthor(t *testing.T, at string, r route, name string, who identity.Principal, by catalog.Author) {
	t.Helper()
	own := catalog.Author{Actor: catalog.ActorOwner, Name: "wallet " + h.owner.Wallet.Hex()}
	ownKey := name == "the owner's key for "+string(r.scope)
	switch r.access {
	case anyone, visitor, adminDoor, accountDoor:
		if who.Kind != identity.Nobody || by != (catalog.Author{}) {
			t.Errorf("%s: %+v, %+v at a route that asks nobody", at, who, by)
		}
	case reader:
		told := name == "the owner" || ownKey || name == "an admin by the token" || name == "an admin by a wallet"
		if (who.Kind != identity.Nobody) != told {
			t.Errorf("%s: sees what only owners do: %v, want %v", at, !told, told)
		}
	case owner, account, seller:
		if (name == "the owner" || ownKey) && by != own {
			t.Errorf("%s: the author is %+v, want %+v", at, by, own)
		}
		if name == "an admin by the token" && by != catalog.AdminToken {
			t.Errorf("%s: the author is %+v", at, by)
		}
	case admin, adminPage:
		if by.Actor != catalog.ActorAdmin || !who.Admin {
			t.Errorf("%s: the author is %+v of %+v", at, by, who)
		}
	case accountPage:
		if by != own {
			t.Errorf("%s: the author is %+v, want %+v", at, by, own)
		}
	case accessEnd:
	}
}

func (v visit) request(method, address string) *http.Request {
	r := httptest.NewRequest(method, address, nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if v.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+v.bearer)
	}
	if v.cookie[0] != "" {
		r.AddCookie(&http.Cookie{Name: v.cookie[0], Value: v.cookie[1]})
	}
	if v.header[0] != "" {
		r.Header.Set(v.header[0], v.header[1])
	}
	return r
}

// The first kind of owner is the operator itself: what was listed with the admin token is no account's.
func TestAccess_WhatTheOperatorListedIsNoAccounts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	own := h.entered(t, newWallet(t))
	h.sell(t, "weather", uuid.UUID{})
	for bearer, want := range map[string]int{own.Token.Reveal(): http.StatusForbidden, signInToken: http.StatusTeapot, "": http.StatusUnauthorized} {
		e := echo.New()
		e.HTTPErrorHandler = h.writeError
		e.GET("/:slug", h.guarded(route{access: owner, scope: identity.ServicesRead, handler: func(c echo.Context) error { return c.NoContent(http.StatusTeapot) }}))
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, visit{bearer: bearer}.request(http.MethodGet, "/weather"))
		if answer.Code != want {
			t.Errorf("%d, want %d", answer.Code, want)
		}
	}
}
