package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

const (
	adminsWallet = "0x2B5AD5c4795c026514f8317c7a215E218DcCD6cF"
	twoSwitches  = `{"items":[{"kind":"stop_402","network":"eip155:84532","on":true,"reason":"the token is being upgraded` + escape + `","by":"admin token","since":"2026-11-30T11:20:00.000000Z",
	"stops":"Nobody new is asked to pay.","goes_on":"Refunds go on."},{"kind":"suspend_strikes","network":null,"on":false,"reason":null,"by":null,"since":null,"stops":"","goes_on":""}]}`
	oneAccount = `{"items":[{"id":"01a229ef-1156-7b25-96a4-01599b66704c","wallet":"` + adminsWallet + `","plan":"free","created_at":"2026-11-30T08:20:00.000000Z",
	"last_seen_at":"2026-11-30T11:20:04.000000Z","admin":true,"services":2}],"next_cursor":""}`
	oneAdmin = `{"wallet":"` + adminsWallet + `","on":false,"granted_by":"MARKET_ADMIN_WALLETS","granted_at":"2026-11-30T08:20:00.000000Z","revoked_by":"admin token","revoked_at":"2026-11-30T11:20:04.000000Z"}`
)

// switchesAPI answers like the parts of the admin API that are about switches, accounts and admins.
func switchesAPI(t *testing.T) {
	t.Helper()
	adminAPI(t, "no such thing", map[string]string{
		"GET /api/v1/admin/switches ": twoSwitches,
		`POST /api/v1/admin/switches {"on":true,"reason":"why","stop_402":"eip155:84532"}`:                    `{"kind":"stop_402","network":"eip155:84532","on":true}`,
		`POST /api/v1/admin/switches {"on":false,"reason":"why","suspend_strikes":true}`:                      `{"kind":"suspend_strikes","on":false}`,
		`POST /api/v1/admin/switches {"on":true,"reason":"why","stop_payouts":true}`:                          `{"kind":"stop_payouts","on":true}`,
		"GET /api/v1/admin/accounts?limit=100 ":                                                               oneAccount,
		"GET /api/v1/admin/accounts?wallet=" + adminsWallet + " ":                                             oneAccount,
		"GET /api/v1/admin/accounts?wallet=0x00 ":                                                             `{"items":[]}`,
		`POST /api/v1/admin/accounts/01a229ef-1156-7b25-96a4-01599b66704c/plan {"plan":"pro","reason":"why"}`: `{"wallet":"` + adminsWallet + `","plan":"pro"}`,
		"GET /api/v1/admin/admins ":                                                                           `{"items":[` + oneAdmin + `],"token":true}`,
		`POST /api/v1/admin/admins {"on":false,"reason":"why","wallet":"` + adminsWallet + `"}`:               oneAdmin,
		`POST /api/v1/admin/admins {"on":true,"reason":"why","wallet":"` + adminsWallet + `"}`:                `{"wallet":"` + adminsWallet + `","on":true}`,
	})
}

func TestAdminSwitchesAccountsAndAdmins_PrintWhatTheAPISaysWhereNobodyLooks(t *testing.T) {
	switchesAPI(t)
	why := []string{"--reason", "why"}
	prints(t, map[string]said{
		"switches":             {[]string{"switches"}, `"kind":"stop_402"`},
		"payments stopped":     {append([]string{"switches", "set", "stop-402", "on", "--network", "eip155:84532"}, why...), `"on":true`},
		"strikes count again":  {append([]string{"switches", "set", "suspend-strikes", "off"}, why...), `"on":false`},
		"payouts stopped":      {append([]string{"switches", "set", "stop-payouts", "on"}, why...), `"kind":"stop_payouts"`},
		"accounts":             {[]string{"accounts"}, `"services":2`},
		"a plan by the id":     {append([]string{"accounts", "plan", "01a229ef-1156-7b25-96a4-01599b66704c", "pro"}, why...), `"plan":"pro"`},
		"a plan by the wallet": {append([]string{"accounts", "plan", adminsWallet, "pro"}, why...), `"plan":"pro"`},
		"admins":               {[]string{"admins"}, `"token":true`},
		"an admin made":        {append([]string{"admins", "add", adminsWallet}, why...), `"on":true`},
		"an admin no more":     {append([]string{"admins", "remove", adminsWallet}, why...), `"on":false`},
	})
	fails(t, map[string]said{
		"no network":          {append([]string{"switches", "set", "stop-402", "on"}, why...), "--network"},
		"a network too many":  {append([]string{"switches", "set", "suspend-strikes", "on", "--network", "eip155:1"}, why...), "leave out --network"},
		"another switch":      {append([]string{"switches", "set", "stop-all", "on"}, why...), "no switch"},
		"neither on nor off":  {append([]string{"switches", "set", "suspend-strikes", "maybe"}, why...), "on or off"},
		"no reason":           {[]string{"switches", "set", "suspend-strikes", "on"}, "reason"},
		"another network":     {append([]string{"switches", "set", "stop-402", "on", "--network", "eip155:1"}, why...), "no such thing (conflict)"},
		"a wallet of nobody":  {append([]string{"accounts", "plan", "0x00", "pro"}, why...), "never signed in"},
		"a plan for nothing":  {[]string{"accounts", "plan", adminsWallet, "pro"}, "reason"},
		"an admin of no form": {append([]string{"admins", "add", "0x00"}, why...), "conflict"},
	})
}

func TestPrintSwitchesAccountsAndAdmins_TablesMoveNoCursor(t *testing.T) {
	t.Parallel()
	items := func(text string) []json.RawMessage {
		var page struct{ Items []json.RawMessage }
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			t.Fatal(err)
		}
		return page.Items
	}
	for what, tt := range map[string]struct {
		print func(io.Writer) error
		want  []string
	}{
		"switches": {func(out io.Writer) error { return printSwitches(out, items(twoSwitches)) },
			[]string{"stop_402         eip155:84532  STOPPED  2026-11-30 11:20 UTC  admin token  the token is being upgraded", "suspend_strikes  -             off"}},
		"one set": {func(out io.Writer) error { return printSwitchSet(out, items(twoSwitches)[0]) },
			[]string{"stop_402 eip155:84532 is on. Nobody new is asked to pay.\nWhat goes on: Refunds go on.\n"}},
		"one set off": {func(out io.Writer) error { return printSwitchSet(out, items(twoSwitches)[1]) }, []string{"suspend_strikes is off.\n"}},
		"accounts":    {func(out io.Writer) error { return printAccounts(out, items(oneAccount)) }, []string{adminsWallet + "  free  2         yes"}},
		"a plan":      {func(out io.Writer) error { return printPlanSet(out, items(oneAccount)[0]) }, []string{"has the plan free."}},
		"admins": {func(out io.Writer) error { return printAdmins(out, items(`{"items":[`+oneAdmin+`]}`)) },
			[]string{adminsWallet + "  no     2026-11-30 08:20 UTC  MARKET_ADMIN_WALLETS  2026-11-30 11:20 UTC  admin token"}},
		"a role": {func(out io.Writer) error { return printRoleSet(out, json.RawMessage(oneAdmin)) }, []string{adminsWallet + " is no admin any more.\n"}},
	} {
		var out bytes.Buffer
		if err := tt.print(&out); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: the output does not say %q:\n%s", what, want, out.String())
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\u202e") {
			t.Errorf("%s: the output moves the cursor:\n%q", what, out.String())
		}
	}
}
