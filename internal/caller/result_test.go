package caller

import (
	"net/http"
	"testing"

	"market/internal/call"
	"market/internal/payment"
)

func TestResult_Ending(t *testing.T) {
	t.Parallel()
	settled := &payment.SettleResponse{Success: true}
	tests := map[string]struct {
		result Result
		want   Ending
	}{
		"served":                               {Result{Status: 200, Outcome: call.Served}, Served},
		"a served 404":                         {Result{Status: 404, Outcome: call.Served, PaymentHeader: "p"}, Served},
		"refused by the service":               {Result{Status: 422, Outcome: call.Refused, PaymentHeader: "p", Payment: settled}, Refused},
		"cooling down":                         {Result{Status: 503, Outcome: call.CooldownRefused, PaymentHeader: "p", Payment: settled}, Refused},
		"failed":                               {Result{Status: 502, Outcome: call.Failed, PaymentHeader: "p", Payment: settled}, Failed},
		"pending beats everything":             {Result{Status: 200, Outcome: call.Served, Problem: &Problem{Charged: ChargedPending}}, Pending},
		"settlement pending":                   {Result{Status: 503, PaymentHeader: "p", Problem: &Problem{Code: call.SettlementPending}}, Pending},
		"the same payment is under way":        {Result{Status: 409, PaymentHeader: "p", Problem: &Problem{Code: call.InProgress}}, Pending},
		"a free answer of no market":           {Result{Status: 200}, Served},
		"a paid answer of no market":           {Result{Status: 204, PaymentHeader: "p", Payment: settled}, Served},
		"a redirect":                           {Result{Status: 302}, Refused},
		"a second challenge":                   {Result{Status: 402, PaymentHeader: "p"}, Refused},
		"unpaid and closed":                    {Result{Status: 503}, Refused},
		"paid, not served, by no market":       {Result{Status: 500, PaymentHeader: "p", Payment: settled}, Failed},
		"paid and a gateway's own error":       {Result{Status: 504, PaymentHeader: "p"}, Pending},
		"a problem that says it cost nothing":  {Result{Status: 503, PaymentHeader: "p", Problem: &Problem{Charged: ChargedNo}}, Refused},
		"a paid request that was turned down":  {Result{Status: 410, PaymentHeader: "p"}, Refused},
		"a settlement that failed, no problem": {Result{Status: 500, PaymentHeader: "p", Payment: &payment.SettleResponse{}}, Pending},
	}
	for name, test := range tests {
		if got := test.result.Ending(); got != test.want {
			t.Errorf("%s: ending = %d, want %d", name, got, test.want)
		}
	}
}

func TestResult_ReadsProblemsOfTheMarketOnly(t *testing.T) {
	t.Parallel()
	problem := `{"code":"upstream_5xx","party":"service","charged":false,"detail":"no\u001b[2J","call":{"id":"c","url":"/api/v1/calls/c"},` +
		`"refund":{"state":"owed","amount":{"amount":"1"},"transaction":null}}`
	tests := map[string]struct {
		status      int
		contentType string
		body        string
		want        bool
	}{
		"a problem":                  {502, "application/problem+json; charset=utf-8", problem, true},
		"a 402":                      {402, "application/json", problem, true},
		"the service's own JSON":     {404, "application/json", problem, false},
		"a problem of somebody else": {500, "application/problem+json", `{"title":"x"}`, false},
		"no JSON":                    {500, "application/problem+json", `<html>`, false},
		"a type that is none":        {500, ";", problem, false},
	}
	for name, test := range tests {
		r := Result{Status: test.status, Header: http.Header{"Content-Type": {test.contentType}}, Body: []byte(test.body)}
		r.read(nil)
		if got := r.Problem != nil; got != test.want {
			t.Errorf("%s: problem = %+v, want one: %v", name, r.Problem, test.want)
			continue
		}
		if p := r.Problem; p != nil && (p.Code != call.Upstream5xx || p.Charged != ChargedNo || p.Call.ID != "c" || p.Refund.State != "owed" || p.Detail != "no [2J") {
			t.Errorf("%s: problem = %+v", name, p)
		}
	}
}

func TestCharged_ReadsTheWordsOfTheWire(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Charged{`true`: ChargedYes, `false`: ChargedNo, `"pending"`: ChargedPending, `null`: "", `7`: "", `"x"`: ""} {
		var c Charged
		if err := c.UnmarshalJSON([]byte(text)); err != nil || c != want {
			t.Errorf("%s: %q, %v, want %q", text, c, err, want)
		}
	}
}
