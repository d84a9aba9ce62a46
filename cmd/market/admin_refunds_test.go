package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

const (
	refundsCall = "01a229ef-0fac-7206-af8a-64b9cef51c56"
	oneRefund   = `{"call":"` + refundsCall + `","state":"parked","amount":"2000","usd":"0.002","network":"eip155:84532","to":"` + adminsWallet + `","owed_at":"2026-11-30T11:20:00.000000Z",
	"next_at":"2026-11-30T11:21:00.000000Z","why":"the token refused it` + escape + `"}`
	oneReview = `{"id":"` + refundsCall + `","state":"settled","service":"weather","created_at":"2026-11-30T11:20:00.000000Z",
	"payment":{"amount":"2000","usd":"","network":"eip155:84532","payer":"` + adminsWallet + `"}}`
)

// refundsAPI answers like the parts of the admin API that are about money that goes back.
func refundsAPI(t *testing.T) {
	t.Helper()
	adminAPI(t, "the refund is not parked", map[string]string{
		"GET /api/v1/admin/refunds?limit=20&state=parked ":                       `{"items":[` + oneRefund + `]}`,
		"GET /api/v1/admin/refunds?limit=20&state=owed ":                         `{"items":[]}`,
		"GET /api/v1/admin/reviews?limit=20 ":                                    `{"items":[` + oneReview + `]}`,
		"POST /api/v1/admin/refunds/" + refundsCall + `/retry {"reason":"why"}`:  strings.Replace(oneRefund, "parked", "owed", 1),
		"POST /api/v1/admin/reviews/" + refundsCall + `/refund {"reason":"why"}`: strings.Replace(oneReview, `"settled"`, `"failed","refund":{"state":"owed"}`, 1),
		"POST /api/v1/admin/reviews/" + refundsCall + `/serve {"reason":"why"}`:  oneReview,
	})
}

func TestAdminRefunds_PrintWhatTheAPISaysWhereNobodyLooks(t *testing.T) {
	refundsAPI(t)
	why := []string{"--reason", "why"}
	prints(t, map[string]said{
		"the parked ones":   {[]string{"refunds"}, `"state":"parked"`},
		"of another state":  {[]string{"refunds", "--state", "owed"}, `"items":[]`},
		"one tried again":   {append([]string{"refunds", "retry", refundsCall}, why...), `"state":"owed"`},
		"the reviews":       {[]string{"reviews"}, `"state":"settled"`},
		"a review refunded": {append([]string{"reviews", "refund", refundsCall}, why...), `"state":"failed"`},
		"a review served":   {append([]string{"reviews", "serve", refundsCall}, why...), `"state":"settled"`},
	})
	fails(t, map[string]said{
		"no reason":      {[]string{"refunds", "retry", refundsCall}, "reason"},
		"one not parked": {append([]string{"refunds", "retry", "01a229ef-0fac-7206-af8a-000000000000"}, why...), "the refund is not parked (conflict)"},
	})
}

func TestAdminRefunds_TablesShowWhatIsThereAndNothingElse(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		row  func(json.RawMessage) (string, error)
		raw  string
		want []string
	}{
		"a refund": {owedRow, oneRefund, []string{"parked", "$0.002", "eip155:84532", adminsWallet, refundsCall}},
		"a review": {reviewRow, oneReview, []string{"settled", "2000 units", "weather", adminsWallet, refundsCall}},
	} {
		got, err := tt.row(json.RawMessage(tt.raw))
		if err != nil || strings.Contains(got, "\x1b") {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q does not have %q", what, got, want)
			}
		}
		if _, err := tt.row(json.RawMessage(`[]`)); err == nil {
			t.Errorf("%s: a list is taken for one", what)
		}
	}
	for what, tt := range map[string]struct {
		print     func(io.Writer, json.RawMessage) error
		raw, want string
	}{
		"retried":  {printRetried, oneRefund, "The refund of $0.002 to " + adminsWallet + " is parked"},
		"served":   {printReviewed, oneReview, "goes on, and is settled"},
		"refunded": {printReviewed, strings.Replace(oneReview, `"settled"`, `"failed","refund":{"state":"owed"}`, 1), "is failed, and its refund owed"},
	} {
		var out bytes.Buffer
		if err := tt.print(&out, json.RawMessage(tt.raw)); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %q, %v; want %q", what, out.String(), err, tt.want)
		}
		if err := tt.print(io.Discard, json.RawMessage(`{}`)); err == nil {
			t.Errorf("%s: another answer is taken for it", what)
		}
	}
}
