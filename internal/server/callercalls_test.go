package server

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/refund"
)

// pays claims a payment of a wallet at a service, and owes its refund where it is asked to.
func (h *house) pays(t *testing.T, at catalog.Service, payer common.Address, refunded bool) call.ID {
	t.Helper()
	e := at.Endpoints[0]
	signature, err := chain.ParseSignature(append(bytes.Repeat([]byte{1}, 64), 27))
	if err != nil {
		t.Fatal(err)
	}
	c := payment.Claim{
		ID: call.NewID(), Network: testNetwork.ID,
		Signed: chain.Signed{Asset: testAsset.Address, Signature: signature, Authorization: chain.Authorization{
			From: payer, To: common.Address{0x1e}, Value: money.FromUnits(2000), ValidBefore: 1_900_000_000,
		}},
		Service: at.ID, Endpoint: e.ID, PriceRevision: e.Prices[0].Revision, Method: e.Method, Path: e.Path,
		Source: netip.MustParseAddr("192.0.2.1"), Origin: call.External, Owner: uuid.Must(uuid.NewV7()), Lease: time.Minute,
	}
	_, _ = rand.Read(c.Signed.Nonce[:]) // never fails
	if _, claimed, err := (payment.Store{}).Claim(t.Context(), h.db, c); err != nil || !claimed {
		t.Fatalf("claimed = %v, %v", claimed, err)
	}
	if refunded {
		owed := refund.Derive(refund.Payment{Call: c.ID, Network: c.Network, ChainID: testNetwork.ChainID, Asset: c.Signed.Asset, Payer: payer, Nonce: c.Signed.Nonce,
			Amount: c.Signed.Value, Treasury: c.Signed.To})
		if err := (refund.Store{}).Owe(t.Context(), h.db, owed); err != nil {
			t.Fatal(err)
		}
	}
	return c.ID
}

// told is what a request is answered with, whole.
func (h *house) told(v visit, address string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.Public().Handler.ServeHTTP(answer, v.request(http.MethodGet, address))
	return answer
}

const (
	callsAt   = "/api/v1/caller/calls"
	refundsAt = "/api/v1/caller/refunds"
)

// Whatever somebody asks for, the rows of another wallet are not among what comes: by the lists, the files and the pages, from any place on.
func TestCaller_AWalletNeverSeesAnothersRows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	us, them := h.entered(t, newWallet(t)), h.entered(t, newWallet(t))
	at := h.sell(t, "weather", uuid.UUID{})
	ours, theirs := h.pays(t, at, us.Account.Wallet, true), h.pays(t, at, them.Account.Wallet, true)
	token, cookie := us.Token.Reveal(), [2]string{h.accountCookie(), us.Token.Reveal()}
	for address, v := range map[string]visit{
		callsAt: {bearer: token}, callsAt + "?format=csv": {bearer: token}, callsAt + "?state=settling": {bearer: token}, callsAt + "?state=open": {bearer: token},
		refundsAt: {bearer: token}, refundsAt + "?format=csv": {bearer: token}, refundsAt + "?state=owed": {bearer: token},
		"/account/calls": {cookie: cookie}, "/account/calls.csv": {cookie: cookie}, "/account/calls?state=open": {cookie: cookie},
	} {
		got := h.told(v, address)
		if body := got.Body.String(); got.Code != http.StatusOK || !strings.Contains(body, ours.String()) || strings.Contains(body, theirs.String()) ||
			strings.Contains(body, them.Account.Wallet.Hex()) {
			t.Errorf("%s: %d, with ours %v, with theirs %v", address, got.Code, strings.Contains(body, ours.String()), strings.Contains(body, theirs.String()))
		}
		join := "?"
		if strings.Contains(address, "?") {
			join = "&"
		}
		if got := h.told(v, address+join+"cursor="+theirs.String()); got.Code != http.StatusOK || strings.Contains(got.Body.String(), ours.String()) {
			t.Errorf("%s from the place of their call on: %d, with rows; it says when they called", address, got.Code)
		}
		for _, name := range []string{"payer", "wallet", "account"} {
			if got := h.told(v, address+join+name+"="+them.Account.Wallet.Hex()); got.Code != http.StatusBadRequest {
				t.Errorf("%s with a %s: %d, want 400", address, name, got.Code)
			}
		}
	}
}

func TestOpenAPI_TheListsOfAWalletAreDescribed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.networks = []chain.Network{testNetwork}
	us := h.entered(t, newWallet(t))
	d := openDocument(t)
	for _, at := range []string{callsAt, refundsAt} {
		d.describedAs(t, "nothing yet", at, http.MethodGet, h.told(visit{bearer: us.Token.Reveal()}, at))
	}
	h.pays(t, h.sell(t, "weather", uuid.UUID{}), us.Account.Wallet, true)
	for _, at := range []string{callsAt, refundsAt} {
		d.describedAs(t, "one call", at, http.MethodGet, h.told(visit{bearer: us.Token.Reveal()}, at))
		d.describedAs(t, "no such state", at, http.MethodGet, h.told(visit{bearer: us.Token.Reveal()}, at+"?state=lost"))
		d.describedAs(t, "no such format", at, http.MethodGet, h.told(visit{bearer: us.Token.Reveal()}, at+"?format=xml"))
		d.describedAs(t, "nobody", at, http.MethodGet, h.told(visit{}, at))
	}
}

func rowsOf(t *testing.T, answer *httptest.ResponseRecorder) [][]string {
	t.Helper()
	rows, err := csv.NewReader(answer.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestCSV_IsAFileOfTheSameCallsHoweverItIsAskedFor(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.networks = []chain.Network{testNetwork}
	us := h.entered(t, newWallet(t))
	id := h.pays(t, h.sell(t, "weather", uuid.UUID{}), us.Account.Wallet, true)
	for address, accept := range map[string]string{callsAt + "?format=csv": "", callsAt: "text/csv"} {
		answer := h.told(visit{bearer: us.Token.Reveal(), header: [2]string{"Accept", accept}}, address)
		rows := rowsOf(t, answer)
		if len(rows) != 2 || rows[1][1] != id.String() || rows[1][7] != "2000" || rows[1][8] != "0.002" || rows[1][12] != "pending" || rows[1][14] != "owed" {
			t.Errorf("%s with Accept %q: %q", address, accept, rows)
		}
		h := answer.Header()
		if h.Get("Content-Type") != typeCSV || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", address, h)
		}
	}
}

func TestInert_NoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "/v1/current": "/v1/current", "0xab": "0xab", "a=1": "a=1",
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1",
	} {
		if got := inert(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// The rows beyond the bound are left out, and the list goes on after the last one.
func TestCSV_HasABoundAndGoesOnAfterIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	us := h.entered(t, newWallet(t))
	h.pays(t, h.sell(t, "weather", uuid.UUID{}), us.Account.Wallet, false)
	const manySQL = `
INSERT INTO calls (id, network, asset, payer, nonce, amount, treasury, valid_after, valid_before, signature, service_id, endpoint_id, price_revision, fee_bps, fingerprint,
                   method, path, source, origin, state, owner, lease_until)
SELECT gen_random_uuid(), network, asset, payer, sha256(n::text::bytea), amount, treasury, valid_after, valid_before, signature, service_id, endpoint_id, price_revision, fee_bps,
       fingerprint, method, path, source, origin, state, owner, lease_until
  FROM calls, generate_series(1, $1) n`
	const beyond = 7
	if _, err := h.db.Exec(t.Context(), manySQL, csvRowsMax+beyond-1); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	address := callsAt + "?format=csv"
	for part, want := range []int{csvRowsMax, beyond} {
		rows := rowsOf(t, h.told(visit{bearer: us.Token.Reveal()}, address))[1:]
		if len(rows) != want {
			t.Fatalf("part %d has %d rows, want %d", part, len(rows), want)
		}
		for _, row := range rows {
			seen[row[1]] = true
		}
		address = callsAt + "?format=csv&cursor=" + rows[len(rows)-1][1]
	}
	if len(seen) != csvRowsMax+beyond {
		t.Errorf("%d calls are in the parts, want %d", len(seen), csvRowsMax+beyond)
	}
}

func TestCallerCalls_ThePagesAreWholeAndTheFirstHasTheTotals(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	us := h.entered(t, newWallet(t))
	at := h.sell(t, "weather", uuid.UUID{})
	const calls = 5
	for range calls {
		h.pays(t, at, us.Account.Wallet, false)
	}
	seen := map[string]bool{}
	cursor := ""
	for page := range 3 {
		var list struct {
			Items  []callView     `json:"items"`
			Next   string         `json:"next_cursor"`
			Totals []spendingView `json:"totals"`
		}
		decodeAnswer(t, h.told(visit{bearer: us.Token.Reveal()}, callsAt+"?limit=2&cursor="+cursor), &list)
		for _, v := range list.Items {
			seen[v.ID.String()] = true
		}
		if first := page == 0; first != (len(list.Totals) == 1) || first && list.Totals[0].Pending != strconv.Itoa(calls*2000) {
			t.Errorf("page %d: totals %+v", page, list.Totals)
		}
		if last := page == 2; last != (list.Next == "") {
			t.Errorf("page %d: the next begins after %q", page, list.Next)
		}
		cursor = list.Next
	}
	if len(seen) != calls {
		t.Errorf("%d calls are on the pages, want %d", len(seen), calls)
	}
}

func TestAccountCalls_AWalletThatNeverPaidIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	us := h.entered(t, newWallet(t))
	answer := h.visited("/account/calls", us.Token.Reveal())
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"has not paid for a call yet", `<a href="/">Look at what is for sale</a>`, us.Account.Wallet.Hex()} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the page does not say %q:\n%s", want, body)
		}
	}
	if strings.Contains(string(body), ".csv") {
		t.Error("an empty list is offered as a file")
	}
}

func decodeAnswer(t *testing.T, answer *httptest.ResponseRecorder, into any) {
	t.Helper()
	if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
		t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
}
