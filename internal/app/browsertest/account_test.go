package browsertest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/shopspring/decimal"

	"market/internal/app/apptest"
	"market/internal/caller"
	"market/internal/chain"
	"market/internal/devnet"
)

// sellersUpstream is what a seller runs.
func sellersUpstream(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(apptest.Works))
	t.Cleanup(server.Close)
	return server.URL
}

// elsewhere asks from an address at which no seller of a test was seen: a call from there is anybody's.
var elsewhere = &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).DialContext}}

// buy pays for a call as anybody does, with the client of callers.
func buy(t *testing.T, w *apptest.World, url, body string) *caller.Result {
	t.Helper()
	client := &caller.Client{Key: w.Payer(t, 10*apptest.PriceUnits), MaxUSD: decimal.New(1, 0), HTTP: elsewhere,
		Assets: []caller.Asset{{Network: devnet.NetworkID, Address: devnet.TokenAddress(), Symbol: devnet.TokenSymbol, Decimals: devnet.TokenDecimals}},
		Now: func() time.Time {
			head, err := w.Chain.Head(context.WithoutCancel(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			return time.Unix(int64(head.Time), 0) //nolint:gosec // of this century
		}}
	result, err := client.Do(t.Context(), caller.Request{Method: http.MethodPost, URL: url, Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}}})
	if err != nil {
		t.Fatalf("buy %s: %v", url, err)
	}
	return result
}

// fill types into fields, each by the name of its input.
func (b *tab) fill(fields map[string]string) {
	b.t.Helper()
	for name, text := range fields {
		do(b, "fill in "+name, chromedp.SetValue(`[name="`+name+`"]`, text))
	}
}

// press sends the form whose button says so.
func (b *tab) press(button string) {
	b.t.Helper()
	do(b, "press "+button, chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll('main button')].find(b => b.textContent.trim() === '`+button+`').click(); void 0`))
}

// A person signs in with the wallet of the browser, lists a service, finds it in the catalog, sells a call, and sees that.
func TestAccountWalk_FromTheWalletToASoldCall(t *testing.T) {
	t.Parallel()
	w, upstream := apptest.Start(t), sellersUpstream(t)
	_, key := apptest.NewKey(t)
	b := openTab(t)
	b.look(1280, "light")
	b.carryWallet(key)

	b.open(w.URL + "/account/services/new")
	b.reads("Sell your API", "Your wallet shows the text before you sign it.")
	do(b, "sign in", chromedp.Click("#wallet"))
	host := strings.TrimPrefix(w.URL, "http://")
	if text := b.shownByWallet(); !strings.HasPrefix(text, host+" wants you to sign in with your Ethereum account:\n"+key.Address().Hex()+"\n") {
		t.Errorf("the wallet shows %q", text)
	}
	b.agree(key)
	b.reads("List a service", "Sign out")

	// What is wrong stands beside its field, all of it at once, and nothing that was typed is lost.
	b.fill(map[string]string{"slug": "Sky High", "name": "Weather", "base_url": upstream, "probe.path": "/healthz", "tags": "data, weather",
		"endpoint.path": "/work", "endpoint.price_usd": "free", "endpoint.input_schema": `{"type": "object",}`, "endpoint.input_example": `{"n": 1}`})
	do(b, "sell POST", chromedp.SetValue(`[name="endpoint.method"]`, "POST"))
	b.press("List the service")
	b.reads("Nothing was changed: 3 things have to be put right.", "must have lower-case letters", "is not JSON")
	for name, want := range map[string]string{"name": "Weather", "tags": "data, weather", "endpoint.price_usd": "free", "endpoint.input_schema": `{"type": "object",}`, "endpoint.method": "POST"} {
		if kept := do(b, name, chromedp.Value(`[name="`+name+`"]`)); kept != want {
			t.Errorf("after the refusal %s is %q, want %q", name, kept, want)
		}
	}
	b.fill(map[string]string{"slug": "weather", "endpoint.price_usd": "0.002", "endpoint.input_schema": `{"type": "object", "required": ["n"]}`})
	b.press("List the service")
	b.reads("The service is listed.", "It is shown now and never again.", "The service passed its probe", "mks_")

	do(b, "look at it in the catalog", chromedp.Click(".brand"))
	b.reads("1 service.", "Weather")
	if result := buy(t, w, w.URL+"/s/weather/work", `{"n":1}`); result.Status != http.StatusOK || string(result.Body) != `{"done":true}` {
		t.Fatalf("the call answers %d %s", result.Status, result.Body)
	}
	apptest.Eventually(t, "the seller sees the call", func() bool {
		b.open(w.URL + "/account/services/weather")
		return strings.Contains(b.text(), "24 hours: 1 call")
	})
	b.reads("for sale", "Paid calls from outside", "served, service: ok", "POST /work", "$0.002")

	do(b, "change it", chromedp.Click(`a[href="/account/services/weather/edit"]`))
	b.reads("Change what it says of itself")
	b.fill(map[string]string{"description": "The weather of a city"})
	b.press("Keep the changes")
	b.reads("The listing is changed.")
	b.open(w.URL + "/account/keys")
	b.fill(map[string]string{"name": "deploys"})
	b.press("Make the key")
	b.reads("This is the key.", "mkk_", "deploys", "services:read")
	b.press("Revoke")
	b.reads("The key is revoked", "revoked")

	do(b, "sign out", chromedp.Click(".adminbar button"))
	b.reads("You are signed out.", "Sell your API")
	b.open(w.URL + "/account/services/weather")
	b.reads("Sell your API")
}

// What a wallet may do wrong is said on the page, as text. Without a wallet the other way is open.
func TestAccountSignIn_SaysWhatWentWrongInTheWallet(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	_, key := apptest.NewKey(t)
	b := openTab(t)
	b.open(w.URL + "/account")
	b.reads("No wallet was found in this browser.", "Or sign elsewhere")
	if off := do(b, "the button", chromedp.Evaluate[bool](`document.querySelector('#wallet').disabled`)); !off {
		t.Error("without a wallet the button can be pressed")
	}

	b.carryWallet(key)
	b.open(w.URL + "/account")
	do(b, "lock the wallet", chromedp.Evaluate[chromedp.Void](`window.name = 'refuses'; void 0`))
	do(b, "sign in", chromedp.Click("#wallet"))
	b.reads("You refused it in the wallet. Nothing was signed.")
	do(b, "unlock it", chromedp.Evaluate[chromedp.Void](`window.name = ''; void 0`))
	do(b, "sign in", chromedp.Click("#wallet"))
	b.shownByWallet()
	do(b, "refuse to sign", chromedp.Evaluate[chromedp.Void](`window.walletRefuses(); void 0`))
	b.reads("You refused it in the wallet. Nothing was signed.")
	do(b, "choose another account", chromedp.Evaluate[chromedp.Void](`window.name = 'elsewhere'; void 0`))
	do(b, "sign", chromedp.Click("#sign"))
	b.reads("The wallet is at another account (0x00000000000000000000000000000000000000aa). Choose " + key.Address().Hex())
}

// Without a script: the address is typed, the text is signed elsewhere, and the signature is pasted.
func TestAccountSignIn_WorksWithoutAScript(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	_, key := apptest.NewKey(t)
	b := openTab(t)
	b.withoutScripts()
	b.open(w.URL + "/account/keys")
	do(b, "type", chromedp.SendKeys("#address", "0x12"))
	b.press("Show the text to sign")
	b.reads("0x and 40 hexadecimal digits, all in one case")
	b.fill(map[string]string{"address": key.Address().Hex()})
	b.press("Show the text to sign")
	b.reads("Sign this text", "wants you to sign in")
	text := do(b, "the text", chromedp.Evaluate[string](`document.querySelector('#message').textContent`))
	b.fill(map[string]string{"signature": apptest.SignText(t, key, text+" and more")})
	b.press("Sign in")
	b.reads("The signature is not that of", "This is another text: sign it.")
	again := do(b, "the text", chromedp.Evaluate[string](`document.querySelector('#message').textContent`))
	b.fill(map[string]string{"signature": apptest.SignText(t, key, again)})
	b.press("Sign in")
	b.reads("Keys for programs", "There is no key yet.")
}

// Every page of sellers, with nothing and with much. B145 in what a service says of itself.
func TestAccountPages_AreForEverybodyAndRunNothing(t *testing.T) {
	t.Parallel()
	axe := readAxe(t)
	w, upstream := apptest.Start(t, "MARKET_STRIKE_FOLD=0", "MARKET_COOLDOWN=1ms"), sellersUpstream(t)
	_, key := apptest.NewKey(t)
	b := openTab(t)
	b.check(view{"account-signin", w.URL + "/account"}, axe)
	b.fill(map[string]string{"address": key.Address().Hex()})
	b.press("Show the text to sign")
	b.reads("Sign this text")
	b.shoot("account-sign")
	b.carryWallet(key)
	b.enterAs(w.URL, key)
	for _, v := range adminViews(w, "-empty", "/account", "/account/earnings", "/account/keys", "/account/calls", "/account/services/new") {
		b.check(v, axe)
	}
	b.open(w.URL + "/account/services/new")
	b.fill(map[string]string{"slug": "A", "base_url": "ftp://x", "endpoint.input_schema": "{"})
	b.press("List the service")
	b.reads("things have to be put right")
	b.shoot("account-services-new-wrong")

	fillPaid(t, w, key)
	seller := w.SignIn(t, key)
	sold, drawn := fillAccount(t, w, seller, upstream), ""
	paid := map[string]any{"network": devnet.NetworkID, "asset": devnet.TokenAddress().Hex()}
	seller.Want(t, http.StatusOK, http.MethodPut, "/api/v1/provider/payout-address", map[string]any{"network": devnet.NetworkID, "address": key.Address().Hex()})
	seller.Want(t, http.StatusOK, http.MethodPut, "/api/v1/provider/payout-address", map[string]any{"network": devnet.NetworkID, "address": "0x90F79bf6EB2c4f870365E785982E1f101E93b906"})
	apptest.Eventually(t, "the payment is final, and is paid out", func() bool {
		answer := seller.Ask(t, http.MethodPost, "/api/v1/provider/payouts", paid)
		if answer.Status != http.StatusCreated {
			return false
		}
		items, _ := answer.JSON["items"].([]any)
		first, _ := items[0].(map[string]any)
		drawn, _ = first["id"].(string)
		return true
	})
	b.check(view{"account-payout", w.URL + "/account/payouts/" + drawn}, axe)
	for _, v := range adminViews(w, "", "/account", "/account/earnings", "/account/keys", "/account/services/weather", "/account/services/evil", "/account/services/weather/edit",
		"/account/services/weather/headers", "/account/services/weather/endpoints/new",
		"/account/services/evil?done=said", "/account/services/nobody", "/account/calls", "/account/calls?state=open", "/account/calls?state=released") {
		b.check(v, axe)
	}
	b.check(view{"account-services-evil-endpoint", w.URL + "/account/services/evil/endpoints/" + sold}, axe)
	b.open(w.URL + "/account/services/evil")
	b.reads("onerror=", "Status 500", "counts", "127.0.0.0/24", "Answer this strike …")
	do(b, "answer it", chromedp.Click(".strike .decide summary"))
	do(b, "say what was wrong", chromedp.SendKeys(".strike .decide textarea", "Our log shows that the answer was sent whole."))
	do(b, "send it", chromedp.Click(".strike .decide button"))
	b.reads("The operator sees what you said", "Our log shows that the answer was sent whole.", "not answered yet")
}

// fillPaid gives a wallet calls that it has paid for, of which each stands in another way: in the middle, at its end, and with the money on each way back.
func fillPaid(t *testing.T, w *apptest.World, payer chain.Key) {
	t.Helper()
	s := &shop{World: w}
	w.Mint(t, payer.Address(), 10*apptest.PriceUnits)
	pay := func(slug string, upstream http.HandlerFunc) string {
		ask := apptest.Ask(w.List(t, slug, upstream, nil).URL)
		return w.Pay(t, payer, w.Challenge(t, ask), ask).Call()
	}
	served, failed := pay("oracle", apptest.Works), pay("broken", apptest.Fails)
	apptest.Eventually(t, "the refund arrives", func() bool { return w.Books(t, failed).Refund == "confirmed" })
	s.parkedLike(t, failed)
	s.copyCall(t, served, openSQL)
	s.inReview(t, served, "asked", map[string]any{"path": "/" + hostileText})
	s.exec(t, endedSQL, served, s.copyCall(t, served, againSQL, map[string]any{"payment_state": "lost"}))
}

// fillAccount gives an account a good service, one that means ill and is off the shelf for its strikes, one that is dead, and keys. It returns the endpoint of
// the one that means ill.
func fillAccount(t *testing.T, w *apptest.World, s *apptest.Seller, upstream string) (endpoint string) {
	t.Helper()
	current := priced("POST", "/v1/current", "0.002", "The weather of a city now")
	current["input_example"], current["output_example"] = map[string]any{"city": "Lima", "units": "metric"}, map[string]any{"city": "Lima", "temp_c": 19.5}
	current["input_schema"] = map[string]any{"type": "object", "required": []string{"city"}, "properties": map[string]any{"city": map[string]any{"type": "string"}}}
	current["trial_calls_per_day"], current["served_statuses"] = 5, []int{404}
	weather := listing("weather", "Open Weather", "Current weather and a week's forecast.", upstream, []string{"data", "weather"}, current, priced("GET", "/v1/city/{city}", "2.5", "A week's forecast"))
	weather["headers"] = map[string]any{"X-Api-Key": "of-the-provider"}
	weather["notices"] = map[string]any{"email": "ops@weather.example"}
	s.Want(t, http.StatusCreated, http.MethodPost, "/api/v1/services", weather)
	buy(t, w, w.URL+"/s/weather/v1/current", `{"city":"Lima"}`)

	hostile := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			hostileFails(rw, r)
		}
	}))
	t.Cleanup(hostile.Close)
	dear := priced("POST", "/work", "0.002", hostileText)
	dear["input_example"], dear["output_example"] = map[string]any{"q": hostileText}, map[string]any{"a": hostileName}
	made := s.Want(t, http.StatusCreated, http.MethodPost, "/api/v1/services", listing("evil", hostileName, hostileText, hostile.URL, []string{"data"}, dear))
	endpoints, _ := made["endpoints"].([]any)
	first, _ := endpoints[0].(map[string]any)
	endpoint, _ = first["id"].(string)
	for range 3 {
		buy(t, w, w.URL+"/s/evil/work", `{"n":1}`)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	s.Want(t, http.StatusCreated, http.MethodPost, "/api/v1/services", listing("dead", "A service that does not answer", "", gone.URL, []string{}, priced("GET", "/v1/"+strings.Repeat("segment/", 12)+"{id}", "0.003", "")))
	for _, name := range []string{"deploys", strings.Repeat("averylongname", 6)} {
		key := s.Want(t, http.StatusCreated, http.MethodPost, "/api/v1/provider/keys", map[string]any{"name": name, "scopes": []string{"services:read", "services:write"}})
		if name == "deploys" {
			id, _ := key["id"].(string)
			s.Want(t, http.StatusNoContent, http.MethodDelete, "/api/v1/provider/keys/"+id, nil)
		}
	}
	return endpoint
}
