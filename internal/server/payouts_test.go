package server

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/money"
	"market/internal/payout"
)

const (
	paysOn  = "eip155:84532"
	paysIn  = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
	paysOut = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"
)

// paying has a house pay on one network.
func (h *house) paying() *house {
	n := chain.Network{ID: paysOn, ChainID: 84532, Assets: []chain.Asset{{Address: common.HexToAddress(paysIn), Symbol: "USDC", Decimals: 6}}}
	h.networks = []chain.Network{n}
	h.payouts = payout.NewMaker(h.db, map[string]payout.Rail{paysOn: {Network: n, Ours: []common.Address{{9}}, Treasuries: map[common.Address]chain.Key{{9}: {}}}}, nil)
	return h
}

func TestPayoutAddress_IsOfWhoeverAsksAndNeverOneOfOurs(t *testing.T) {
	t.Parallel()
	h := newHouse(t).paying()
	own, other := h.entered(t, newWallet(t)), h.entered(t, newWallet(t))
	const path = "/api/v1/provider/payout-address"
	for body, want := range map[string]int{
		`{"network": "` + paysOn + `", "address": "` + paysOut + `"}`:                    http.StatusOK,
		`{"network": "eip155:1", "address": "` + paysOut + `"}`:                          http.StatusUnprocessableEntity,
		`{"network": "` + paysOn + `", "address": "` + paysIn + `"}`:                     http.StatusUnprocessableEntity,
		`{"network": "` + paysOn + `", "address": "` + common.Address{9}.Hex() + `"}`:    http.StatusUnprocessableEntity,
		`{"network": "` + paysOn + `", "address": "0x12"}`:                               http.StatusUnprocessableEntity,
		`{"network": "` + paysOn + `", "address": "` + paysOut + `", "account": "else"}`: http.StatusUnprocessableEntity,
	} {
		if got := h.ask(http.MethodPut, path, own.Token.Reveal(), "192.0.2.7", body); got.Code != want {
			t.Errorf("%s: %d %s, want %d", body, got.Code, got.Body, want)
		}
	}
	for bearer, has := range map[string]bool{own.Token.Reveal(): true, other.Token.Reveal(): false} {
		if got := h.ask(http.MethodGet, path, bearer, "192.0.2.7", ""); got.Code != http.StatusOK || strings.Contains(got.Body.String(), paysOut) != has {
			t.Errorf("%d %s; it should be there: %v", got.Code, got.Body, has)
		}
	}
}

func TestPayouts_NobodySeesOrMovesThoseOfAnother(t *testing.T) {
	t.Parallel()
	h := newHouse(t).paying()
	own, other := h.entered(t, newWallet(t)), h.entered(t, newWallet(t))
	tx, err := h.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // committed below
	const id = "01a22b12-01f4-7d10-8c20-5a1b2c3d4e5f"
	for _, sql := range []string{`ALTER TABLE payouts DISABLE TRIGGER payouts_checked`, `
INSERT INTO payouts (id, account_id, network, asset, treasury, number, amount, address, nonce, from_block, made_by)
VALUES ('` + id + `', '` + own.Account.ID.String() + `', '` + paysOn + `', '\x036CbD53842c5426634e7929541eC2318f3dCF7e', '\x70997970C51812dc3A010C7d01b50e0d17dc79C8', 1, 9750,
	'\x90F79bf6EB2c4f870365E785982E1f101E93b906', sha256('1'), 0, 'a test')`} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine, theirs := own.Token.Reveal(), other.Token.Reveal()
	const pay = `{"network": "` + paysOn + `", "asset": "` + paysIn + `"}`
	d := openDocument(t)
	for name, tt := range map[string]struct {
		method, path, described, bearer, body string
		want                                  int
		sees                                  bool
	}{
		"my list":                           {"GET", "/api/v1/provider/payouts", "", mine, "", 200, true},
		"somebody else's list":              {"GET", "/api/v1/provider/payouts", "", theirs, "", 200, false},
		"my statement":                      {"GET", "/api/v1/provider/payouts/1/statement", "/api/v1/provider/payouts/{number}/statement", mine, "", 200, true},
		"somebody else's of the number":     {"GET", "/api/v1/provider/payouts/1/statement", "/api/v1/provider/payouts/{number}/statement", theirs, "", 404, false},
		"a number that is none":             {"GET", "/api/v1/provider/payouts/x/statement", "/api/v1/provider/payouts/{number}/statement", mine, "", 404, false},
		"my earnings":                       {"GET", "/api/v1/provider/earnings", "", mine, "", 200, true},
		"one more while it is open":         {"POST", "/api/v1/provider/payouts", "", mine, pay, 409, false},
		"one of nothing":                    {"POST", "/api/v1/provider/payouts", "", theirs, pay, 409, false},
		"all of them, by a provider":        {"GET", "/api/v1/admin/payouts", "", mine, "", 403, false},
		"a provider who holds its own":      {"POST", "/api/v1/admin/payouts/" + id + "/hold", "/api/v1/admin/payouts/{id}/hold", mine, `{"reason": "x"}`, 403, false},
		"all of them, by an admin":          {"GET", "/api/v1/admin/payouts", "", signInToken, "", 200, true},
		"an admin who releases what is not": {"POST", "/api/v1/admin/payouts/" + id + "/release", "/api/v1/admin/payouts/{id}/release", signInToken, `{"reason": "x"}`, 409, false},
		"an admin without a reason":         {"POST", "/api/v1/admin/payouts/" + id + "/retry", "/api/v1/admin/payouts/{id}/retry", signInToken, `{}`, 422, false},
	} {
		got := h.ask(tt.method, tt.path, tt.bearer, "192.0.2.7", tt.body)
		if got.Code != tt.want || strings.Contains(got.Body.String(), "9750") != tt.sees {
			t.Errorf("%s: %d %s, want %d, and the amount shown: %v", name, got.Code, got.Body, tt.want, tt.sees)
		}
		if tt.described == "" {
			tt.described = tt.path
		}
		d.describedAs(t, name, tt.described, strings.ToLower(tt.method), got)
	}
	for _, step := range []string{"hold", "release", "retry", "cancel"} {
		got := h.ask(http.MethodPost, "/api/v1/admin/payouts/"+id+"/"+step, signInToken, "192.0.2.7", `{"reason": "a test"}`)
		if got.Code != http.StatusOK {
			t.Errorf("%s: %d %s", step, got.Code, got.Body)
		}
		d.describedAs(t, step, "/api/v1/admin/payouts/{id}/"+step, "post", got)
	}
	var kept int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE subject_kind = 'payout' AND subject = $1 AND reason = 'a test'`, id).Scan(&kept); err != nil || kept != 4 {
		t.Errorf("%d decisions are in the audit, %v; want 4", kept, err)
	}
}

func TestCSVOf_ItsSharesComeToTheSumAndTheLastRowHasIt(t *testing.T) {
	t.Parallel()
	of := func(units string) money.Signed { sum, _ := money.ParseSigned(units); return sum }
	line := payout.Line{Service: "weather", Price: of("10000"), Fee: of("250"), Share: of("9750")}
	p := payout.Payout{Purse: payout.Purse{Network: paysOn}, State: payout.StateConfirmed, Transaction: common.Hash{0xee}}
	rows, err := csv.NewReader(strings.NewReader(string(csvOf(p, []payout.Line{line, line})))).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%v, %v; want a heading, two calls and the sum", rows, err)
	}
	if last := rows[3]; last[0] != "sum" || last[3] != "20000" || last[4] != "500" || last[5] != "19500" || last[6] != paysOn || last[8] != p.Transaction.Hex() {
		t.Errorf("the last row is %q", last)
	}
	if raw, err := json.Marshal(rows[0]); err != nil || string(raw) != `["call","time","service","price","fee","share","network","asset","transaction"]` {
		t.Errorf("the heading is %s, %v", raw, err)
	}
}
