package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	moneyWrong = `{"ok":false,"wrong":["7 went` + escape + `"],"promise_one":[{"network":"eip155:84532","asset":"0xA","paid":"50","served":"30","refund_owed":"20","refund_confirmed":"0","lost":"0","pending":"0"}],
	"wallets":[{"network":"eip155:84532","treasury":"0xB","asset":"0xA","balances":{"treasury":"50","fees":"-2"},"owed":"20","held":"43","block":1210,"unmatched":1,"compared_at":"2026-11-30T11:20:00Z"},
	{"network":"eip155:8453","treasury":"0xB","asset":"0xA","balances":{},"owed":"0","held":null,"block":null,"unmatched":0,"compared_at":null}],
	"differences":[{"network":"eip155:84532","treasury":"0xB","kind":"outflow","text":"7 went","since":"2026-11-30T11:00:00Z","closed_at":"2026-11-30T11:15:00Z"}]}`
	moneyRight = `{"ok":true,"wrong":[],"promise_one":[],"wallets":[],"differences":[]}`
)

func TestAdminMoney_ItsCodeIsZeroOnlyWhereNothingIsWrong(t *testing.T) {
	answers := map[string]string{"GET /api/v1/admin/money": moneyWrong, "POST /api/v1/admin/money/reconcile": moneyRight}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(answers[r.Method+" "+r.URL.Path])) }))
	t.Cleanup(server.Close)
	t.Setenv("MARKET_ADMIN_TOKEN", "the-token-of-the-test")
	t.Setenv("MARKET_PUBLIC_URL", server.URL)
	if out, err := admin(t, "money"); !errors.Is(err, errMoney) || !strings.Contains(out, `"refund_owed"`) {
		t.Errorf("what is wrong: %v, %s", err, out)
	}
	if out, err := admin(t, "money", "--now"); err != nil || !strings.Contains(out, `"ok"`) {
		t.Errorf("after a look: %v, %s", err, out)
	}
	answers["GET /api/v1/admin/money"] = `{"items":[]}`
	if _, err := admin(t, "money"); !errors.Is(err, errNotThisAPI) {
		t.Errorf("another API: %v", err)
	}
}

func TestPrintMoney_ShowsPeopleWhatIsWrongLast(t *testing.T) {
	t.Parallel()
	var m moneyStanding
	if err := json.Unmarshal([]byte(moneyWrong), &m); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printMoney(&out, m); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fees -2, treasury 50", "43", "1210", "STOPPED", "outflow", "WRONG: 7 went?"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
