package server

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payout"
)

const (
	earnedSQL = `
WITH served AS (
	UPDATE calls SET state = 'served', payment_state = 'final', transaction = nonce, log_index = 1, block_number = 9, block_hash = nonce, asked_at = market_now()
	 WHERE id = $1 RETURNING *
)
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, method, path, source, recorded_at)
SELECT $2, id, false, service_id, endpoint_id, 'served', 'ok', 'service', origin, true, asked_at, method, path, source, market_now() FROM served`

	payeeText = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"
)

// earning is a house of which a provider has earned the price of one call, and may be paid.
func earning(t *testing.T) (h *house, token string) {
	t.Helper()
	h = newHouse(t)
	h.networks = []chain.Network{testNetwork}
	treasury := common.Address{0x1e} // see pays
	h.payouts = payout.NewMaker(h.db, map[string]payout.Rail{testNetwork.ID: {Network: testNetwork, Ours: []common.Address{treasury},
		Treasuries: map[common.Address]chain.Key{treasury: {}}}}, nil)
	us := h.entered(t, newWallet(t))
	id := h.pays(t, h.sell(t, "weather", us.Account.ID), testPayer, false)
	if _, err := h.db.Exec(t.Context(), earnedSQL, id, uuid.Must(uuid.NewV7())); err != nil {
		t.Fatal(err)
	}
	return h, us.Token.Reveal()
}

func read(t *testing.T, answer *http.Response) (status int, body string) {
	t.Helper()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(all)
}

// asks sends a form of the page of earnings.
func (h *house) asks(t *testing.T, token string, form url.Values) (status int, body string) {
	t.Helper()
	form.Set("form", walletForm(token))
	return read(t, h.post(accountEarningsPath, h.accountCookie(), token, form))
}

func (h *house) sees(t *testing.T, token, path string, parts ...string) {
	t.Helper()
	status, body := read(t, h.visited(path, token))
	for _, part := range parts {
		if status != http.StatusOK || !strings.Contains(body, part) {
			t.Errorf("%s: %d, and it does not say %q:\n%s", path, status, part, body)
		}
	}
}

func TestAccountEarnings_AProviderIsPaidFromThePage(t *testing.T) {
	t.Parallel()
	h, token := earning(t)
	h.sees(t, token, accountEarningsPath, `data-label="Available">$0.002</td>`, ">Pay now<", "Nothing can be paid out before you say where to", "There is no payout yet", `<th scope="row">served</th><td>1</td>`)
	pay := url.Values{"action": {"pay"}, "network": {testNetwork.ID}, "asset": {testAsset.Address.Hex()}}
	if status, body := h.asks(t, token, pay); status != http.StatusConflict || !strings.Contains(body, "No payout was made.") || !strings.Contains(body, "There is no address") {
		t.Errorf("without an address: %d %s", status, body)
	}
	set := func(address string) (int, string) {
		return h.asks(t, token, url.Values{"action": {"address"}, "network": {testNetwork.ID}, "address": {address}})
	}
	if status, body := set("0x12"); status != http.StatusUnprocessableEntity || !strings.Contains(body, `value="0x12"`) || !strings.Contains(body, `aria-invalid="true"`) {
		t.Errorf("an address that is none: %d %s", status, body)
	}
	if status, body := set(payeeText); status != http.StatusSeeOther {
		t.Errorf("an address: %d %s", status, body)
	}
	if status, body := h.asks(t, token, pay); status != http.StatusSeeOther {
		t.Errorf("pay now: %d %s", status, body)
	}
	h.sees(t, token, accountEarningsPath+"?done=pay", "A payout is made.", "being sent", payeeText)
	all, err := payout.Store{}.List(t.Context(), h.db, payout.Filter{}, 10)
	if err != nil || len(all) != 1 || all[0].Amount.String() != "2000" {
		t.Fatalf("payouts are %+v, %v; want one of all that was earned", all, err)
	}
	at := accountHome + "/payouts/" + all[0].ID.String()
	h.sees(t, token, at, "<td>2000</td>", "<td><strong>2000</strong></td>", at+"/statement.csv")
	h.sees(t, token, at+"/statement.csv", "call,time,service,price,fee,share,network,asset,transaction", "sum,,,2000,0,2000,"+testNetwork.ID)
}

func TestAccountEarnings_WhoeverHasEarnedNothingIsToldSoAndSeesNothingOfOthers(t *testing.T) {
	t.Parallel()
	h, token := earning(t)
	other := h.entered(t, newWallet(t)).Token.Reveal()
	h.sees(t, other, accountEarningsPath, "Nothing is earned yet.", "There is no payout yet")
	for _, form := range []url.Values{{"action": {"address"}, "network": {testNetwork.ID}, "address": {payeeText}},
		{"action": {"pay"}, "network": {testNetwork.ID}, "asset": {testAsset.Address.Hex()}}} {
		if status, body := h.asks(t, token, form); status != http.StatusSeeOther {
			t.Fatalf("%d %s", status, body)
		}
	}
	all, err := payout.Store{}.List(t.Context(), h.db, payout.Filter{}, 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("payouts are %+v, %v", all, err)
	}
	for _, path := range []string{"/payouts/" + all[0].ID.String(), "/payouts/" + all[0].ID.String() + "/statement.csv", "/payouts/" + call.NewID().String()} {
		if status, body := read(t, h.visited(accountHome+path, other)); status != http.StatusNotFound {
			t.Errorf("%s: %d %s, want 404", path, status, body)
		}
	}
}

// B119: held, it is not sent; signed, it is not cancelled.
func TestAdminPayoutsPage_DecidesAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	h, token := earning(t)
	session := openSession(h.at)
	cookie := [2]string{h.sessionCookie(), session.value(signInToken)}
	page := func(want string) {
		t.Helper()
		if answer := h.told(visit{cookie: cookie}, adminPayoutsPath); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%d, and the page does not say %q: %s", answer.Code, want, answer.Body)
		}
	}
	page("There is no payout.")
	for _, form := range []url.Values{{"action": {"address"}, "network": {testNetwork.ID}, "address": {payeeText}},
		{"action": {"pay"}, "network": {testNetwork.ID}, "asset": {testAsset.Address.Hex()}}} {
		h.asks(t, token, form)
	}
	all, err := payout.Store{}.List(t.Context(), h.db, payout.Filter{}, 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("payouts are %+v, %v", all, err)
	}
	decide := func(action, reason string, want int, says string) {
		t.Helper()
		status, body := read(t, h.post(adminPayoutsPath, cookie[0], cookie[1], url.Values{"form": {session.formToken(signInToken)}, "action": {action},
			"payout": {all[0].ID.String()}, "reason": {reason}}))
		if status != want || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s; want %d and %q", action, status, body, want, says)
		}
	}
	page("Cancel the payout")
	decide("hold", "", http.StatusUnprocessableEntity, `aria-invalid="true"`)
	decide("hold", "we ask the provider", http.StatusSeeOther, "")
	page("owed, held")
	decide("hold", "me too", http.StatusConflict, "Nothing was changed.")
	decide("release", "it is right", http.StatusSeeOther, "")
	if _, err := h.db.Exec(t.Context(), `UPDATE payouts SET state = 'sent', signed_at = market_now()`); err != nil {
		t.Fatal(err)
	}
	decide("cancel", "too late", http.StatusConflict, "may have left")
	decide("void", "no such decision", http.StatusNotFound, "")
	h.sees(t, token, accountEarningsPath, "on its way")
}
