package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/labstack/echo/v4"

	"market/internal/config"
	"market/internal/identity"
)

// post sends a form as a browser does from a page of ours; header pairs change that.
func (h *house) post(path, cookie, value string, form url.Values, headers ...string) *http.Response {
	r := visit{cookie: [2]string{cookie, value}}.request(http.MethodPost, path)
	r.Body, r.ContentLength = http.NoBody, 0
	sent := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	sent.Header = r.Header
	sent.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sent.Header.Set("User-Agent", browser)
	sent.Header.Set("Accept", "text/html")
	for i := 0; i < len(headers); i += 2 {
		sent.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	h.Public().Handler.ServeHTTP(answer, sent)
	return answer.Result()
}

// What a browser sends for another site does nothing by a wallet's session either, and neither does a form of another session.
func TestWalletForms_AreOfTheSessionThatSendsThem(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	key, other := newWallet(t), newWallet(t)
	if _, err := h.identities.Grant(t.Context(), h.db, crypto.PubkeyToAddress(key.PublicKey), "admin token"); err != nil {
		t.Fatal(err)
	}
	mine, again, theirs := h.entered(t, key).Token.Reveal(), h.entered(t, key).Token.Reveal(), h.entered(t, other).Token.Reveal()
	good := url.Values{"form": {walletForm(mine)}}
	for name, tt := range map[string]struct {
		form    url.Values
		headers []string
		want    int
	}{
		"another site":                                {good, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"another site of our domain":                  {good, []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		"no form token":                               {nil, nil, http.StatusForbidden},
		"the form token of a session of this wallet":  {url.Values{"form": {walletForm(again)}}, nil, http.StatusForbidden},
		"the form token of somebody else":             {url.Values{"form": {walletForm(theirs)}}, nil, http.StatusForbidden},
		"the session's token for a form token":        {url.Values{"form": {mine}}, nil, http.StatusForbidden},
		"the form token of a session by the token":    {url.Values{"form": {openSession(h.at).formToken(signInToken)}}, nil, http.StatusForbidden},
		"another kind of body, which carries no form": {good, []string{"Content-Type", "text/plain"}, http.StatusForbidden},
	} {
		if answer := h.post("/admin/session/end", h.walletAdminCookie(), mine, tt.form, tt.headers...); answer.StatusCode != tt.want || len(answer.Cookies()) != 0 {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, tt.want)
		}
	}
	if _, ok, err := h.identities.OfSession(t.Context(), h.db, mine); err != nil || !ok {
		t.Errorf("the session ended: %v", err)
	}
	answer := h.post("/admin/session/end", h.walletAdminCookie(), mine, good)
	if _, ok, err := h.identities.OfSession(t.Context(), h.db, mine); answer.StatusCode != http.StatusSeeOther || err != nil || ok {
		t.Errorf("a form of ours: %d, and the session is good: %v, %v", answer.StatusCode, ok, err)
	}
	var entries int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'session_ended' AND actor = 'admin'`).Scan(&entries); err != nil || entries != 1 {
		t.Errorf("%d entries of the audit say so, %v", entries, err)
	}
}

func TestKeepSession_GivesTheAdminsCookieToAdminsAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, tt := range map[string]struct {
		admin bool
		want  []string
	}{
		"a seller": {false, []string{"__Secure-market-account=token; Path=/account; Max-Age=28800; HttpOnly; Secure; SameSite=Strict",
			"__Secure-market-wallet-admin=; Path=/admin; Max-Age=0; HttpOnly; Secure; SameSite=Strict"}},
		"an admin": {true, []string{"__Secure-market-account=token; Path=/account; Max-Age=28800; HttpOnly; Secure; SameSite=Strict",
			"__Secure-market-wallet-admin=token; Path=/admin; Max-Age=28800; HttpOnly; Secure; SameSite=Strict"}},
	} {
		answer := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/account/session", nil), answer)
		if err := h.keepSession(c, identity.Opened{Token: config.NewSecret("token"), Account: identity.Account{Admin: tt.admin}}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, cookie := range answer.Result().Cookies() {
			got = append(got, cookie.String())
		}
		if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Somebody who signs in again, with whatever wallet, is not the one before any more, and who signs out is nobody.
func TestSessions_OfABrowserEndWithTheNextSignInAndWithTheSignOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	chiefKey, sellerKey := newWallet(t), newWallet(t)
	if _, err := h.identities.Grant(t.Context(), h.db, crypto.PubkeyToAddress(chiefKey.PublicKey), "admin token"); err != nil {
		t.Fatal(err)
	}
	good := func(token string) bool {
		t.Helper()
		_, ok, err := h.identities.OfSession(t.Context(), h.db, token)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	set := func(answer *http.Response) map[string]string {
		cookies := map[string]string{}
		for _, c := range answer.Cookies() {
			cookies[c.Name] = c.Value
		}
		return cookies
	}
	chief := h.entered(t, chiefKey).Token.Reveal()
	wallet := crypto.PubkeyToAddress(sellerKey.PublicKey)
	made, err := h.signIns.Challenge(t.Context(), h.db, identity.ChallengeDraft{Wallet: wallet})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := crypto.Sign(accounts.TextHash([]byte(made.Message)), sellerKey)
	if err != nil {
		t.Fatal(err)
	}
	answer := h.post("/account/session", h.accountCookie(), chief, url.Values{"message": {made.Message}, "signature": {hexutil.Encode(signature)}})
	cookies := set(answer)
	seller := cookies[h.accountCookie()]
	value, said := cookies[h.walletAdminCookie()]
	if answer.StatusCode != http.StatusSeeOther || !good(seller) || good(chief) || value != "" || !said {
		t.Errorf("%d; the new session is good: %v, the one before: %v; the admin's cookie is set: %v, to %q", answer.StatusCode, good(seller), good(chief), said, value)
	}
	for name, out := range map[string]struct{ path, cookie string }{
		"on the pages of sellers": {"/account/session/end", h.accountCookie()}, "on those of admins": {"/admin/session/end", h.walletAdminCookie()},
	} {
		token := h.entered(t, chiefKey).Token.Reveal()
		cookies := set(h.post(out.path, out.cookie, token, url.Values{"form": {walletForm(token)}}))
		for _, cookie := range []string{h.accountCookie(), h.walletAdminCookie()} {
			if value, said := cookies[cookie]; value != "" || !said {
				t.Errorf("%s: %s is set: %v, to %q", name, cookie, said, value)
			}
		}
		if good(token) {
			t.Errorf("%s: the session is good", name)
		}
	}
	// An admin by the token who is signed in with a wallet, too, is neither afterwards.
	token := h.entered(t, chiefKey).Token.Reveal()
	byToken := openSession(h.at)
	cookies = set(h.post("/admin/session/end", h.sessionCookie(), byToken.value(signInToken), url.Values{"form": {byToken.formToken(signInToken)}},
		"Cookie", h.sessionCookie()+"="+byToken.value(signInToken)+"; "+h.walletAdminCookie()+"="+token))
	if value, said := cookies[h.sessionCookie()]; good(token) || value != "" || !said {
		t.Errorf("by the token: the wallet's session is good: %v, the cookie is set: %v, to %q", good(token), said, value)
	}
}

// ask sends a request of the API from an address.
func (h *house) ask(method, path, bearer, from, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = from + ":1234"
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	answer := httptest.NewRecorder()
	h.Public().Handler.ServeHTTP(answer, r)
	return answer
}

func TestTries_OneNetworkIsBoundedAndItsNeighboursWithGoodTokensGoOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	own := h.entered(t, newWallet(t))
	token, wrong := own.Token.Reveal(), "mkses_"+strings.Repeat("A", 43)
	const path, bad, away = "/api/v1/provider/keys", "198.51.100.1", "203.0.113.9"
	if got := h.ask(http.MethodGet, path, token, "198.51.100.77", ""); got.Code != http.StatusOK {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	for range badTokensMax {
		if got := h.ask(http.MethodGet, path, wrong, bad, ""); got.Code != http.StatusUnauthorized {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	fresh := h.entered(t, newWallet(t)).Token.Reveal()
	for name, tt := range map[string]struct {
		bearer, from string
		want         int
	}{
		"one more wrong one":                     {wrong, bad, http.StatusTooManyRequests},
		"from elsewhere in the network":          {wrong, "198.51.100.200", http.StatusTooManyRequests},
		"a good one that was not used before":    {fresh, bad, http.StatusTooManyRequests},
		"a good one that was":                    {token, bad, http.StatusOK},
		"a wrong one from another network":       {wrong, away, http.StatusUnauthorized},
		"the admin token, which is not of these": {signInToken, bad, http.StatusForbidden},
	} {
		got := h.ask(http.MethodGet, path, tt.bearer, tt.from, "")
		if got.Code != tt.want || (got.Header().Get("Retry-After") != "") != (tt.want == http.StatusTooManyRequests) {
			t.Errorf("%s: %d, Retry-After %q, want %d", name, got.Code, got.Header().Get("Retry-After"), tt.want)
		}
	}
	h.at = h.at.Add(triesWindow)
	if got := h.ask(http.MethodGet, path, fresh, bad, ""); got.Code != http.StatusOK {
		t.Errorf("after the window: %d", got.Code)
	}
	const challenge = `{"address": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}`
	for range challengesMax {
		if got := h.ask(http.MethodPost, "/api/v1/auth/challenge", "", bad, challenge); got.Code != http.StatusOK {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	for from, want := range map[string]int{bad: http.StatusTooManyRequests, away: http.StatusOK} {
		if got := h.ask(http.MethodPost, "/api/v1/auth/challenge", "", from, challenge); got.Code != want {
			t.Errorf("a challenge from %s: %d, want %d", from, got.Code, want)
		}
	}
	signIn := `{"message": "x", "signature": "0x` + strings.Repeat("00", 65) + `"}`
	for range signInsMax {
		if got := h.ask(http.MethodPost, "/api/v1/auth/session", "", bad, signIn); got.Code != http.StatusUnauthorized {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	if got := h.ask(http.MethodPost, "/api/v1/auth/session", "", bad, signIn); got.Code != http.StatusTooManyRequests {
		t.Errorf("one more sign-in: %d", got.Code)
	}
}
