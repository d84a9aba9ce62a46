package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/app/apptest"
	"market/internal/devnet"
	"market/internal/identity"
)

// A tenant is a wallet that uses the API of sellers.
type tenant struct {
	w       *apptest.World
	address common.Address
	token   string
}

func (s *tenant) ask(t *testing.T, method, path string, body any) apptest.Answer {
	t.Helper()
	a := apptest.Asking{Method: method, URL: s.w.URL + path, Header: http.Header{}}
	if s.token != "" {
		a.Header.Set("Authorization", "Bearer "+s.token)
	}
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		a.Body = string(raw)
	}
	return s.w.Send(t, a, "")
}

func (s *tenant) want(t *testing.T, status int, method, path string, body any) map[string]any {
	t.Helper()
	answer := s.ask(t, method, path, body)
	if answer.Status != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, answer.Status, answer.Body, status)
	}
	return answer.JSON
}

// enter signs in with a key: for its own address, or for that of a contract wallet.
func enter(t *testing.T, w *apptest.World, keyHex string, as common.Address) *tenant {
	t.Helper()
	key, err := crypto.HexToECDSA(keyHex)
	if err != nil {
		t.Fatal(err)
	}
	if as == (common.Address{}) {
		as = crypto.PubkeyToAddress(key.PublicKey)
	}
	s := &tenant{w: w, address: as}
	made := s.want(t, http.StatusOK, http.MethodPost, "/api/v1/auth/challenge", map[string]any{"address": as.Hex()})
	message, _ := made["message"].(string)
	signature, err := crypto.Sign(accounts.TextHash([]byte(message)), key)
	if err != nil {
		t.Fatal(err)
	}
	signature[64] += 27
	body := map[string]any{"message": message, "signature": hexutil.Encode(signature)}
	opened := s.want(t, http.StatusCreated, http.MethodPost, "/api/v1/auth/session", body)
	s.token, _ = opened["token"].(string)
	if again := s.ask(t, http.MethodPost, "/api/v1/auth/session", body); again.Status != http.StatusUnauthorized {
		t.Errorf("the same message again: %d %s", again.Status, again.Body)
	}
	return s
}

func tenantOf(t *testing.T, w *apptest.World) *tenant {
	t.Helper()
	text, _ := apptest.NewKey(t)
	return enter(t, w, text, common.Address{})
}

func idOf(answer map[string]any) string {
	id, _ := answer["id"].(string)
	return id
}

func TestIdentity_WhatIsOfOneAccountIsOutOfReachOfAnother(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	a, b := tenantOf(t, w), tenantOf(t, w)
	hook := map[string]any{"notices": map[string]any{"email": "owner@shop.example"}}
	mine := a.want(t, http.StatusCreated, http.MethodPost, "/api/v1/services", draft("mine", hook))
	b.want(t, http.StatusCreated, http.MethodPost, "/api/v1/services", draft("theirs", nil))
	endpoint := idOf(first(mine["endpoints"]))
	key := a.want(t, http.StatusCreated, http.MethodPost, "/api/v1/provider/keys", map[string]any{"name": "deploy", "scopes": []string{"services:write"}})
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/services/mine/suspend", map[string]any{"reason": "a test"}); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	letter := idOf(first(a.want(t, http.StatusOK, http.MethodGet, "/api/v1/services/mine/notices", nil)["items"]))
	if letter == "" || endpoint == "" {
		t.Fatal("there is no notice to reach for")
	}
	var strike string
	if err := w.DB.QueryRow(t.Context(), `INSERT INTO strikes (id, service_id, opened_at, folds_until, last_evidence_at)
		SELECT gen_random_uuid(), id, market_now(), market_now(), market_now() FROM services WHERE slug = 'mine' RETURNING id`).Scan(&strike); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		method, path string
		body         any
		want         int
	}{
		"another's service":                     {http.MethodPatch, "/api/v1/services/mine", map[string]any{"name": "Taken"}, 403},
		"to retire another's service":           {http.MethodDelete, "/api/v1/services/mine", nil, 403},
		"an endpoint by another's service":      {http.MethodPatch, "/api/v1/services/mine/endpoints/" + endpoint, map[string]any{"price_usd": "9"}, 403},
		"another's endpoint by its own service": {http.MethodPatch, "/api/v1/services/theirs/endpoints/" + endpoint, map[string]any{"price_usd": "9"}, 404},
		"to retire another's endpoint":          {http.MethodDelete, "/api/v1/services/theirs/endpoints/" + endpoint, nil, 404},
		"another's notice by its own service":   {http.MethodPost, "/api/v1/services/theirs/notices/" + letter + "/resend", nil, 404},
		"another's strike by its own service":   {http.MethodPost, "/api/v1/services/theirs/appeals", map[string]any{"strike": strike, "text": "it was not so"}, 404},
		"another's key":                         {http.MethodDelete, "/api/v1/provider/keys/" + idOf(key), nil, 404},
		"to put its own back":                   {http.MethodPost, "/api/v1/admin/services/mine/relist", map[string]any{"reason": "please"}, 403},
	} {
		if got := b.ask(t, tt.method, tt.path, tt.body); got.Status != tt.want {
			t.Errorf("%s: %d %s, want %d", name, got.Status, got.Body, tt.want)
		}
	}
	after := a.want(t, http.StatusOK, http.MethodGet, "/api/v1/services/mine", nil)
	if after["name"] != "A name" || first(after["endpoints"])["price_usd"] != "0.002" || after["notices"] == nil || after["state"] != "suspended" {
		t.Errorf("the service is now %v", after)
	}
	owned := b.want(t, http.StatusOK, http.MethodGet, "/api/v1/provider/services", nil)
	if items, _ := owned["items"].([]any); len(items) != 1 || first(owned["items"])["slug"] != "theirs" {
		t.Errorf("it has %v", owned)
	}
	// What an owner sees of its own nobody else does, and nobody is told which wallet it is.
	for _, who := range []*tenant{b, {w: w}} {
		seen := who.want(t, http.StatusOK, http.MethodGet, "/api/v1/services/mine", nil)
		if seen["notices"] != nil || seen["secret"] != nil || seen["state_by"] != nil {
			t.Errorf("a stranger sees %v", seen)
		}
		for _, path := range []string{"/api/v1/services/mine", "/services/mine", "/api/v1/services?status=suspended", "/services/theirs", "/", "/api/v1/services"} {
			got, wallets := who.ask(t, http.MethodGet, path, nil), []common.Address{a.address}
			if who != b { // to which its own wallet is shown as the author
				wallets = append(wallets, b.address)
			}
			for _, wallet := range wallets {
				if strings.Contains(strings.ToLower(string(got.Body)), strings.ToLower(wallet.Hex()[2:])) {
					t.Errorf("%s shows whose it is", path)
				}
			}
		}
	}
	deploy := &tenant{w: w, token: fmt.Sprint(key["token"])}
	deploy.want(t, http.StatusOK, http.MethodPatch, "/api/v1/services/mine", map[string]any{"name": "Mine"})
	a.want(t, http.StatusNoContent, http.MethodDelete, "/api/v1/provider/keys/"+idOf(key), nil)
	deploy.want(t, http.StatusUnauthorized, http.MethodPatch, "/api/v1/services/mine", map[string]any{"name": "Mine again"})
	a.want(t, http.StatusNoContent, http.MethodDelete, "/api/v1/auth/session", nil)
	a.want(t, http.StatusUnauthorized, http.MethodGet, "/api/v1/provider", nil)
}

// B150: what a seller changes of a listing that stands is a revision that says who changed what, is checked and probed as a new listing is, and does not
// bring back what an admin took off the shelf. Its address and its price are what callers can see to be new; the method and the path of what was sold
// do not change.
func TestIdentity_AnEditOfALiveListingIsARevisionOfItsOwner(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	a := tenantOf(t, w)
	made := a.want(t, http.StatusCreated, http.MethodPost, "/api/v1/services", draft("mine", nil))
	endpoint := "/api/v1/services/mine/endpoints/" + idOf(first(made["endpoints"]))
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/services/mine/suspend", map[string]any{"reason": "it sells something else"}); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	moved := a.want(t, http.StatusOK, http.MethodPatch, "/api/v1/services/mine", map[string]any{"base_url": "http://127.0.0.1:10"})
	if first(moved["checks"])["name"] != "probe" || moved["state"] != "suspended" || moved["base_url_since"] == made["base_url_since"] {
		t.Errorf("a new address: %v", moved)
	}
	priced := a.want(t, http.StatusOK, http.MethodPatch, endpoint, map[string]any{"price_usd": "0.004"})
	if priced["price_revision"] == first(made["endpoints"])["price_revision"] {
		t.Errorf("a new price: %v", priced)
	}
	for _, fixed := range []map[string]any{{"method": "POST"}, {"path": "/other"}} {
		a.want(t, http.StatusUnprocessableEntity, http.MethodPatch, endpoint, fixed)
	}
	a.want(t, http.StatusUnprocessableEntity, http.MethodPatch, "/api/v1/services/mine", map[string]any{"base_url": "ftp://127.0.0.1"})
	a.want(t, http.StatusForbidden, http.MethodPost, "/api/v1/admin/services/mine/relist", map[string]any{"reason": "it is mine"})
	_, revisions := w.Admin(t, http.MethodGet, "/api/v1/services/mine/revisions", nil)
	items, _ := revisions["items"].([]any)
	if len(items) != 2 {
		t.Fatalf("%v", revisions)
	}
	for i, want := range []string{`{"price_usd":"0.004"}`, `{"base_url":"http://127.0.0.1:10"}`} {
		item, _ := items[i].(map[string]any)
		after, err := json.Marshal(item["after"])
		if err != nil || string(after) != want || item["by"] != "wallet "+a.address.Hex() {
			t.Errorf("%v, want %s", item, want)
		}
	}
}

func TestIdentity_AContractWalletSignsInByItsOwnWord(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	text, owner := apptest.NewKey(t)
	wallet, err := w.Chain.DeployWallet(t.Context(), owner.Address(), devnet.MoodHonest)
	if err != nil {
		t.Fatal(err)
	}
	s := enter(t, w, text, wallet)
	if own := s.want(t, http.StatusOK, http.MethodGet, "/api/v1/provider", nil); own["wallet"] != wallet.Hex() {
		t.Errorf("%v", own)
	}
	stranger, _ := apptest.NewKey(t)
	key, err := crypto.HexToECDSA(stranger)
	if err != nil {
		t.Fatal(err)
	}
	none := &tenant{w: w}
	message := none.want(t, http.StatusOK, http.MethodPost, "/api/v1/auth/challenge", map[string]any{"address": wallet.Hex()})["message"]
	signature, err := crypto.Sign(accounts.TextHash([]byte(fmt.Sprint(message))), key)
	if err != nil {
		t.Fatal(err)
	}
	none.want(t, http.StatusUnauthorized, http.MethodPost, "/api/v1/auth/session", map[string]any{"message": message, "signature": hexutil.Encode(signature)})
}

// B148: an admin of the configuration is one until somebody demotes it, and then with the next request on the API and on the pages.
func TestIdentity_ADemotedAdminIsNoneAtOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := tenantOf(t, w)
	list := func() (api, page int) {
		t.Helper()
		cookie := http.Header{"Cookie": {"market-wallet-admin=" + s.token}, "Accept": {"text/html"}, "User-Agent": {"Mozilla/5.0"}, "Sec-Fetch-Site": {"same-origin"}}
		return s.ask(t, http.MethodGet, "/api/v1/admin/strikes", nil).Status, w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/admin", Header: cookie}, "").Status
	}
	expect := func(when string, want int) {
		t.Helper()
		if api, page := list(); api != want || page != want {
			t.Errorf("%s: %d by the API, %d by the page, want %d", when, api, page, want)
		}
	}
	expect("a seller", http.StatusForbidden)
	change := func(do func(ctx context.Context) (bool, error)) {
		t.Helper()
		if did, err := do(t.Context()); err != nil || !did {
			t.Fatal(did, err)
		}
	}
	change(func(ctx context.Context) (bool, error) {
		return identity.Store{}.Grant(ctx, w.DB, s.address, "admin token")
	})
	expect("an admin", http.StatusOK)
	change(func(ctx context.Context) (bool, error) {
		return identity.Store{}.Revoke(ctx, w.DB, s.address, "admin token")
	})
	expect("demoted", http.StatusForbidden)
}
