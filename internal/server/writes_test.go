package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/identity"
)

func TestWrites_OneAccountIsBoundedByWhateverItShowsAndOthersGoOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.writes.max = 3
	ownKey, chiefKey := newWallet(t), newWallet(t)
	if _, err := h.identities.Grant(t.Context(), h.db, crypto.PubkeyToAddress(chiefKey.PublicKey), "admin token"); err != nil {
		t.Fatal(err)
	}
	own, other, chief := h.entered(t, ownKey), h.entered(t, newWallet(t)), h.entered(t, chiefKey)
	h.sell(t, "weather", own.Account.ID)
	key, _ := h.key(t, own.Account.ID, identity.Scopes()...)
	_, keyID := h.key(t, own.Account.ID, identity.Scopes()...) // which is revoked
	token := own.Token.Reveal()
	const path, body = "/api/v1/services/weather", `{"name": "Rain"}`
	for range h.writes.max {
		if got := h.ask(http.MethodPatch, path, token, "192.0.2.7", body); got.Code == http.StatusTooManyRequests {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	for name, tt := range map[string]struct {
		method, path, bearer string
		bound                bool
	}{
		"one more":                    {http.MethodPatch, path, token, true},
		"another kind of change":      {http.MethodPost, "/api/v1/provider/keys", token, true},
		"by a key, from anywhere":     {http.MethodPost, path + "/secret", key, true},
		"what the page of it changes": {http.MethodPost, "/account/services/weather/edit", "", true},
		"to look":                     {http.MethodGet, path, token, false},
		"to revoke a key":             {http.MethodDelete, "/api/v1/provider/keys/" + keyID.String(), token, false},
		"another account":             {http.MethodPost, "/api/v1/provider/keys", other.Token.Reveal(), false},
		"an admin by the token":       {http.MethodPatch, path, signInToken, false},
	} {
		var status int
		var retry string
		if tt.bearer == "" {
			answer := h.post(tt.path, h.accountCookie(), token, url.Values{"form": {walletForm(token)}})
			status, retry = answer.StatusCode, answer.Header.Get("Retry-After")
		} else {
			answer := h.ask(tt.method, tt.path, tt.bearer, "198.51.100.1", body)
			status, retry = answer.Code, answer.Header().Get("Retry-After")
		}
		if (status == http.StatusTooManyRequests) != tt.bound || tt.bound && retry != "3600" {
			t.Errorf("%s: %d, Retry-After %q", name, status, retry)
		}
	}
	for n := range h.writes.max + 1 {
		if got := h.ask(http.MethodPatch, path, chief.Token.Reveal(), "192.0.2.7", body); got.Code == http.StatusTooManyRequests {
			t.Errorf("change %d of an admin: %d", n, got.Code)
		}
	}
	h.at = h.at.Add(writesWindow)
	if got := h.ask(http.MethodPost, "/api/v1/provider/keys", token, "192.0.2.7", body); got.Code == http.StatusTooManyRequests {
		t.Errorf("an hour later: %d %s", got.Code, got.Body)
	}
}

// Every change of an account is bounded but those that are named, and those are in the table.
func TestUnbounded_AreRoutesOfAccounts(t *testing.T) {
	t.Parallel()
	known := map[string]access{}
	for _, r := range newTestServer().table() {
		known[r.method+" "+r.path] = r.access
	}
	for name := range unbounded {
		if a := known[name]; a != account && a != accountPage {
			t.Errorf("%s has access %d", name, a)
		}
	}
}

// A late body runs do when somebody begins to read it, and is whole then.
type late struct {
	io.Reader
	do func()
}

func (l *late) Read(p []byte) (int, error) {
	if l.do != nil {
		l.do()
		l.do = nil
	}
	return l.Reader.Read(p)
}

// Whoever holds the last byte of a request back until the role, the session or the key is gone is refused, as if all of it had come then.
func TestAccess_IsAskedForWhenAllOfTheRequestIsHere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ownKey, chiefKey := newWallet(t), newWallet(t)
	wallet := crypto.PubkeyToAddress(chiefKey.PublicKey)
	h.sell(t, "weather", h.entered(t, ownKey).Account.ID)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	demote := func(ctx context.Context, _ string) error {
		_, err := h.identities.Revoke(ctx, h.db, wallet, "admin token")
		return err
	}
	end := func(ctx context.Context, token string) error {
		_, err := h.identities.EndSession(ctx, h.db, token)
		return err
	}
	for name, tt := range map[string]struct {
		method, path, body string
		cookie             func() string // its name; nil: of the API
		admin              bool
		lose               func(ctx context.Context, token string) error
		want               int
	}{
		"a demoted admin by the API":    {http.MethodPost, "/api/v1/admin/services/weather/suspend", `{"reason": "because"}`, nil, true, demote, http.StatusForbidden},
		"a demoted admin as an owner":   {http.MethodPatch, "/api/v1/services/weather", `{"name": "Mine"}`, nil, true, demote, http.StatusForbidden},
		"a demoted admin by the pages":  {http.MethodPost, "/admin/switches", "on=on", h.walletAdminCookie, true, demote, http.StatusForbidden},
		"an owner whose session ended":  {http.MethodPatch, "/api/v1/services/weather", `{"name": "Mine"}`, nil, false, end, http.StatusUnauthorized},
		"an account that is signed out": {http.MethodPost, "/api/v1/provider/keys", `{"name": "k", "scopes": ["services:read"]}`, nil, false, end, http.StatusUnauthorized},
		"a page that is signed out":     {http.MethodPost, "/account/services/weather/edit", "name=Mine", h.accountCookie, false, end, http.StatusSeeOther},
	} {
		key := ownKey
		if tt.admin {
			key = chiefKey
			_, err := h.identities.Grant(t.Context(), h.db, wallet, "admin token")
			must(err)
		}
		token := h.entered(t, key).Token.Reveal()
		v, body := visit{bearer: token}, tt.body
		if tt.cookie != nil {
			v, body = visit{cookie: [2]string{tt.cookie(), token}}, body+"&form="+url.QueryEscape(walletForm(token))
		}
		asked := v.request(tt.method, tt.path)
		asked.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		lost := false
		asked.Body, asked.ContentLength = io.NopCloser(&late{strings.NewReader(body), func() { lost = true; must(tt.lose(t.Context(), token)) }}), int64(len(body))
		answer := httptest.NewRecorder()
		h.Public().Handler.ServeHTTP(answer, asked)
		if !lost || answer.Code != tt.want || tt.want == http.StatusSeeOther && !strings.HasPrefix(answer.Header().Get("Location"), signInPath) {
			t.Errorf("%s: %d to %q, want %d; the body was read: %v", name, answer.Code, answer.Header().Get("Location"), tt.want, lost)
		}
	}
	var name, state string
	must(h.db.QueryRow(t.Context(), `SELECT name, state FROM services WHERE slug = 'weather'`).Scan(&name, &state))
	if name != "Weather" || state != "listed" {
		t.Errorf("the service is %s, %s", name, state)
	}
}

// A body that is too long is told by whoever reads it, to those who may ask.
func TestArrived_TooMuchIsRefusedAfterWhoAsks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	own := h.entered(t, newWallet(t))
	for bearer, want := range map[string]int{"": http.StatusUnauthorized, own.Token.Reveal(): http.StatusRequestEntityTooLarge} {
		if got := h.ask(http.MethodPost, "/api/v1/provider/keys", bearer, "192.0.2.7", strings.Repeat(" ", bodyMax+1)); got.Code != want {
			t.Errorf("%d %s, want %d", got.Code, got.Body, want)
		}
	}
}

// Of two admins who demote each other at once, the second has no role to do it by; and none gives it back to itself.
func TestRole_IsChangedByWhoHasItWhenItIsChanged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	by, stays, fresh := crypto.PubkeyToAddress(newWallet(t).PublicKey), crypto.PubkeyToAddress(newWallet(t).PublicKey), crypto.PubkeyToAddress(newWallet(t).PublicKey)
	if _, err := h.identities.Grant(t.Context(), h.db, stays, "admin token"); err != nil {
		t.Fatal(err)
	}
	c := echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder())
	// So it was let in, and has lost the role since.
	let(c, identity.Principal{Kind: identity.Session, Account: uuid.New(), Wallet: by, Admin: true}, catalog.ActorAdmin)
	if _, err := h.role(c, by, true, "it was me"); refusalOf(err).Reason != "forbidden" {
		t.Errorf("gives it to itself: %v", err)
	}
	if _, err := h.role(c, fresh, true, "a friend"); refusalOf(err).Reason != "forbidden" {
		t.Errorf("gives it to another one: %v", err)
	}
	if _, err := h.role(c, stays, false, "revenge"); refusalOf(err).Reason != "forbidden" {
		t.Errorf("takes it from another one: %v", err)
	}
	var admins int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM admins WHERE revoked_at IS NULL`).Scan(&admins); err != nil || admins != 1 {
		t.Errorf("%d admins, %v", admins, err)
	}
	let(c, identity.Principal{Kind: identity.AdminToken, Admin: true}, catalog.ActorAdmin)
	if _, err := h.role(c, by, true, "again"); err != nil {
		t.Errorf("by the admin token: %v", err)
	}
}
