package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"market/internal/identity"
)

// visited asks for a page with a wallet's session in the cookie.
func (h *house) visited(path, token string) *http.Response {
	r := visit{cookie: [2]string{h.accountCookie(), token}}.request(http.MethodGet, path)
	r.Header.Set("User-Agent", browser)
	r.Header.Set("Accept", "text/html")
	answer := httptest.NewRecorder()
	h.Public().Handler.ServeHTTP(answer, r)
	return answer.Result()
}

// addressOf is a route of the sellers' pages at a service and an id.
func addressOf(r route, slug string) string {
	return strings.NewReplacer(":slug", slug, ":id", uuid.NewString()).Replace(r.path)
}

// The pages of a service are its owner's: another account is refused at each of them, whatever its form carries, and so is the owner at what the operator sells.
func TestAccountPages_OfAServiceAreItsOwnersAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	own, other := h.entered(t, newWallet(t)), h.entered(t, newWallet(t))
	h.sell(t, "weather", own.Account.ID)
	h.sell(t, "operators", uuid.UUID{})
	asked := 0
	for _, r := range h.accountPageRoutes() {
		if !strings.Contains(r.path, ":slug") {
			continue
		}
		for slug, by := range map[string]identity.Opened{"weather": other, "operators": own} {
			token, status := by.Token.Reveal(), 0
			if r.method == http.MethodPost {
				status = h.post(addressOf(r, slug), h.accountCookie(), token, url.Values{"form": {walletForm(token)}}).StatusCode
			} else {
				status = h.visited(addressOf(r, slug), token).StatusCode
			}
			asked++
			if status != http.StatusForbidden {
				t.Errorf("%s %s of %s by another account: %d, want 403", r.method, r.path, slug, status)
			}
		}
	}
	if asked < 30 {
		t.Errorf("%d requests were sent: the test shows little", asked)
	}
}

// Every form of a seller who is signed in carries the token of the session, and comes from a page of ours.
func TestAccountForms_AreOfTheSessionThatSendsThem(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	own := h.entered(t, newWallet(t))
	token := own.Token.Reveal()
	h.sell(t, "weather", own.Account.ID)
	for _, r := range h.accountPageRoutes() {
		if r.method != http.MethodPost {
			continue
		}
		at := addressOf(r, "weather")
		if answer := h.post(at, h.accountCookie(), token, url.Values{"form": {walletForm(token)}}, "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s from another site: %d, want 403", r.path, answer.StatusCode)
		}
		if r.access != accountPage {
			continue // nobody is signed in there yet
		}
		for name, form := range map[string]url.Values{"none": {}, "that of another session": {"form": {walletForm("mkses_another")}}} {
			if answer := h.post(at, h.accountCookie(), token, form); answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s: %d, want 403", r.path, name, answer.StatusCode)
			}
		}
	}
	if _, ok, err := h.identities.OfSession(t.Context(), h.db, token); err != nil || !ok {
		t.Errorf("a form that was refused ended the session: %v", err)
	}
}

// Only the page that signs in may run a script, and only ours. It asks us nothing by itself.
func TestSignInPage_AloneRunsAScript(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	own := h.entered(t, newWallet(t))
	h.sell(t, "weather", own.Account.ID)
	for path, want := range map[string]bool{signInPath: true, accountHome + "/keys": false, accountHome + "/services/new": false, "/rules": false} {
		token := own.Token.Reveal()
		if want {
			token = ""
		}
		answer := h.visited(path, token)
		policy := answer.Header.Get("Content-Security-Policy")
		if answer.StatusCode != http.StatusOK || strings.Contains(policy, "script-src https://shop.example/signin.js;") != want || strings.Contains(policy, "script-src 'self'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "connect-src") ||
			!strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: %d, policy %q", path, answer.StatusCode, policy)
		}
	}
	if answer := h.visited("/account/keys?x=1", ""); answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/account/sign-in?next=%2Faccount%2Fkeys%3Fx%3D1" {
		t.Errorf("without a session: %d to %s", answer.StatusCode, answer.Header.Get("Location"))
	}
}

// What comes from a link may be anybody's.
func TestSafeAccountNext_StaysAmongTheSellersPages(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/account/keys":                     "/account/keys",
		"/account/services/weather?done=x":  "/account/services/weather?done=x",
		"":                                  accountHome,
		"https://evil.example/account/keys": accountHome,
		"//evil.example/account/keys":       accountHome,
		"/account/../admin":                 accountHome,
		"/accounting":                       accountHome,
		"/admin":                            accountHome,
		"/account/sign-in":                  accountHome,
		"/account/session/end":              accountHome,
		"javascript:alert(1)":               accountHome,
	} {
		if got := safeAccountNext(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}
