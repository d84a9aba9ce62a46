package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"strings"
	"testing"
)

// escape is what a terminal acts on, as a stranger may have written it.
const escape = `\u001b[2J\u202e`

const queueFirst = `{"services":[{"service":"weather","state":"listed","open":2,"limit":3,"window_seconds":86400,"concentrated":true,"words":"3 of 3 from one address in 28 min",
	"next":"the next failure delists it: strike 3 of 3","sources":{"evidence":3,"networks":1,"largest_network":"192.0.2.0/24","largest_network_share":1,
	"payers":1,"largest_payer":"0xaa","largest_payer_share":0.666},"clears":{"words":"cleared 6 times by trial calls from one address"}}],
	"items":[{"id":"1"}],"total":2,"next_cursor":"next"}`

const oneService = `{"summary":{"service":"weather","state":"listed","open":1,"limit":3,"window_seconds":86400,"concentrated":true,"words":"1 of 1 from one address","next":"the next failure is strike 2 of 3"},
	"items":[{"id":"01a2","state":"open","counts":true,"opened_at":"2026-01-02T03:04:05.000000Z","deliveries":1,"sources":{"words":"1 of 1 from one address"},
	"evidence":[{"call":"01a3","recorded_at":"2026-01-02T03:04:05.000000Z","source":"192.0.2.7","origin":"external","method":"POST","path":"/v1/` + escape + `",
	"latency_ms":12.4,"reason":"upstream_unreachable","error":"connect: refused","others":{"asked":12,"failed":3}}]}]}`

// reviewAPI answers like the part of the admin API that is about strikes.
func reviewAPI(t *testing.T) *adminClient {
	t.Helper()
	return adminAPI(t, "the strike is void already", map[string]string{
		"GET /api/v1/admin/strikes?limit=100 ":                           queueFirst,
		"GET /api/v1/admin/strikes?cursor=next&limit=100 ":               `{"services":[{"service":"b` + escape + `","state":"delisted","open":3,"limit":3,"window_seconds":86400}],"items":[],"next_cursor":""}`,
		"GET /api/v1/admin/strikes/weather ":                             oneService,
		`POST /api/v1/admin/strikes/01a2/void {"reason":"our resolver"}`: `{"service":"weather","effect":"The strike is void and does not count.` + escape + `"}`,
		"GET /api/v1/admin/audit?limit=20&service=weather ": `{"items":[{"at":"2026-01-02T03:04:05.000000Z","by":"admin token","action":"void","subject_kind":"strike","subject":"01a2","service":"weather",
			"reason":"ours` + escape + `"}],"next_cursor":"more"}`,
		"GET /api/v1/admin/outages?limit=1 ": `{"items":[{"replica":null,"cause":"services","began_at":"2026-01-02T03:04:05.000000Z","reaches_back_to":"2026-01-02T03:01:05.000000Z","ended_at":null,
			"services_asked":12,"services_failed":9}],"next_cursor":""}`,
	})
}

func TestAdminStrikes_PrintWhatTheAPISaysWhereNobodyLooks(t *testing.T) {
	reviewAPI(t)
	prints(t, map[string]said{
		"the whole queue":  {[]string{"strikes"}, `{"services":[{"service":"weather",`},
		"its second page":  {[]string{"strikes"}, `"state":"delisted"`},
		"its strikes":      {[]string{"strikes"}, `"items":[{"id":"1"}]`},
		"one service":      {[]string{"strikes", "weather"}, `"error":"connect: refused"`},
		"a voided strike":  {[]string{"strikes", "void", "01a2", "--reason", "our resolver"}, `"effect":"The strike is void`},
		"the audit of one": {[]string{"audit", "--service", "weather"}, `"subject":"01a2"`},
		"the outages":      {[]string{"outages", "--limit", "1"}, `"cause":"services"`},
	})
	fails(t, map[string]said{
		"no reason":             {[]string{"strikes", "uphold", "01a2"}, "reason"},
		"what another one did":  {[]string{"strikes", "uphold", "01a2", "--reason", "our resolver"}, "the strike is void already (conflict)"},
		"two services":          {[]string{"strikes", "a", "b"}, "arg"},
		"an answer of no queue": {[]string{"strikes", "void", "../services/x", "--reason", "our resolver"}, "conflict"},
	})
}

func TestAdminStrikes_TablesShowNothingThatMovesTheCursor(t *testing.T) {
	client := reviewAPI(t)
	audits := listOf{path: "/api/v1/admin/audit", head: "WHEN", row: auditRow, query: url.Values{"service": {"weather"}}, limit: 20}
	outages := listOf{path: "/api/v1/admin/outages", head: "BEGAN", row: outageRow, query: url.Values{}, limit: 1}
	for what, tt := range map[string]struct {
		print func(io.Writer) error
		want  []string
	}{
		"the queue": {func(w io.Writer) error { return client.printQueue(t.Context(), w, true) }, []string{"CONCENTRATED", "2 of 3   yes", "3 of 3 from one address in 28 min",
			"100 % 192.0.2.0/24", "67 % 0xaa", "the next failure delists it", "CLEARED WITHIN 24 h", "cleared 6 times", "not within 24 h", "\nb?[2J? ", "3 of 3   -"}},
		"one service": {func(w io.Writer) error { return printStrikes(w, json.RawMessage(oneService)) }, []string{"weather is listed, with 1 of 3 strikes", "CONCENTRATED: 1 of 1",
			"cleared within 24 h: not within 24 h\n", "01a2", "2026-01-02 03:04 UTC", "POST /v1/", "12 ms", "connect: refused", "3 of 12 failed"}},
		"no strikes": {func(w io.Writer) error {
			return printStrikes(w, json.RawMessage(`{"summary":{"service":"calm","state":"listed","limit":3}}`))
		}, []string{"calm is listed, with 0 of 3 strikes"}},
		"a decision": {func(w io.Writer) error {
			return printDecision(w, json.RawMessage(`{"service":"weather","effect":"The strike is void.`+escape+`"}`))
		}, []string{"weather: The strike is void."}},
		"the audit":   {func(w io.Writer) error { return client.printList(t.Context(), w, audits, true) }, []string{"admin token", "void", "strike 01a2", "ours"}},
		"the outages": {func(w io.Writer) error { return client.printList(t.Context(), w, outages, true) }, []string{"holds", "the fleet", "9 of 12 services", "2026-01-02 03:01 UTC"}},
	} {
		var out bytes.Buffer
		if err := tt.print(&out); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		text := out.String()
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", what, want, text)
			}
		}
		if strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s moves the cursor:\n%q", what, text)
		}
	}
}
