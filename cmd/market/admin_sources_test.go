package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const twoSources = `{"items":[{"name":"facilitator/hosted","state":"exhausted","reasons":[{"why":"exhausted","words":"They stopped us at 11:20: out of credit.` + escape + `"},
	{"why":"guarded","words":"We stopped at 15,000."}],"used":15000,"asked":15700,"cap":15000,"busiest":5000,"retry_at":"2026-11-30T12:20:00.000000Z",
	"last_success_at":"2026-11-30T08:19:58.000000Z","cost_today_usd":"22.5","waiting":3,"notice":{"kind":"source_out","raised_at":"2026-11-30T11:20:00.000000Z","channel":"mail"}},
	{"name":"rpc/eip155:1/x` + escape + `","state":"ok","reasons":[],"used":7,"asked":7,"cap":null,"busiest":0,"retry_at":null,"last_success_at":null,"cost_today_usd":null,"waiting":0,"notice":null}]}`

// sourcesAPI answers like the part of the admin API that is about sources.
func sourcesAPI(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.Method + " " + r.URL.EscapedPath() + " " + string(body) {
		case "GET /api/v1/admin/sources ":
			_, _ = io.WriteString(w, twoSources)
		case "POST /api/v1/admin/sources/facilitator%2Fhosted/try ", `POST /api/v1/admin/sources/facilitator%2Fhosted/try {"reason":"invoice 4711"}`:
			_, _ = io.WriteString(w, `{"source":{"name":"facilitator/hosted"},"effect":"The next request tests it."}`)
		default:
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":"conflict","detail":"source mail refuses us nothing"}`)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("MARKET_ADMIN_TOKEN", "the-token-of-the-test")
	t.Setenv("MARKET_PUBLIC_URL", server.URL)
}

func TestAdminSources_PrintWhatTheAPISaysWhereNobodyLooks(t *testing.T) {
	sourcesAPI(t)
	for what, tt := range map[string]struct {
		args []string
		want string
	}{
		"all":                  {[]string{"sources"}, `"cap":15000`},
		"one tried":            {[]string{"sources", "try", "facilitator/hosted"}, `"effect":"The next request tests it."`},
		"one tried for reason": {[]string{"sources", "try", "facilitator/hosted", "--reason", "invoice 4711"}, `"effect"`},
	} {
		out, err := admin(t, tt.args...)
		var compact bytes.Buffer
		if err != nil || json.Compact(&compact, []byte(out)) != nil || !strings.Contains(compact.String(), tt.want) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	for what, args := range map[string][]string{"one that works": {"sources", "try", "mail"}, "another address": {"sources", "try", "../services/x"}} {
		if out, err := admin(t, args...); err == nil || !strings.Contains(err.Error(), "refuses us nothing (conflict)") || out != "" {
			t.Errorf("%s: %v, %q", what, err, out)
		}
	}
}

func TestPrintSources_ATableSaysWhatIsOutAndMovesNoCursor(t *testing.T) {
	t.Parallel()
	var page struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(twoSources), &page); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printSources(&out, page.Items); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SOURCE ", "facilitator/hosted   exhausted  15000  15000  5000     15700  $22.5       2026-11-30 12:20 UTC  2026-11-30 08:19 UTC  2026-11-30 11:20 UTC, by mail  3\n",
		"none", "\nfacilitator/hosted: They stopped us at 11:20: out of credit.", "\nfacilitator/hosted: We stopped at 15,000.\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, out.String())
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e") {
		t.Errorf("the table moves the cursor:\n%q", out.String())
	}
	out.Reset()
	if err := printTried(&out, json.RawMessage(`{"source":{"name":"mail"},"effect":"The next request tests it.`+escape+`"}`)); err != nil || !strings.HasPrefix(out.String(), "mail: The next request tests it.") ||
		strings.ContainsAny(out.String(), "\x1b\u202e") {
		t.Errorf("%v, %q", err, out.String())
	}
}
