package main

import (
	"bytes"
	"encoding/json"
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
	const tried = `{"source":{"name":"facilitator/hosted"},"effect":"The next request tests it."}`
	adminAPI(t, "source mail refuses us nothing", map[string]string{
		"GET /api/v1/admin/sources ":                                                    twoSources,
		"POST /api/v1/admin/sources/facilitator%2Fhosted/try ":                          tried,
		`POST /api/v1/admin/sources/facilitator%2Fhosted/try {"reason":"invoice 4711"}`: tried,
	})
}

func TestAdminSources_PrintWhatTheAPISaysWhereNobodyLooks(t *testing.T) {
	sourcesAPI(t)
	prints(t, map[string]said{
		"all":                  {[]string{"sources"}, `"cap":15000`},
		"one tried":            {[]string{"sources", "try", "facilitator/hosted"}, `"effect":"The next request tests it."`},
		"one tried for reason": {[]string{"sources", "try", "facilitator/hosted", "--reason", "invoice 4711"}, `"effect"`},
	})
	fails(t, map[string]said{
		"one that works":  {[]string{"sources", "try", "mail"}, "refuses us nothing (conflict)"},
		"another address": {[]string{"sources", "try", "../services/x"}, "refuses us nothing (conflict)"},
	})
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
