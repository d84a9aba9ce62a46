package source

import (
	"strings"
	"testing"
	"time"
)

func TestClassify_WhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	shapes := []Shape{{Status: 403, Text: "Quota"}, {Text: "trial period is over"}, {Status: 418}, {}}
	type row struct {
		kind   Kind
		runs   RunsOut
		answer Answer
		want   Verdict
	}
	tests := map[string]row{
		"it worked":                            {KindFacilitator, Prepaid, Answer{Status: 200}, Verdict{Kind: Worked}},
		"no content is a good answer":          {KindWebhook, Rate, Answer{Status: 204}, Verdict{Kind: Worked}},
		"nothing came":                         {KindFacilitator, Prepaid, Answer{}, Verdict{Kind: Troubled, Said: "HTTP 0"}},
		"402":                                  {KindFacilitator, Rate, Answer{Status: 402}, Verdict{Kind: Refused, Said: "HTTP 402"}},
		"402 with a moment to wait":            {KindFacilitator, Prepaid, Answer{Status: 402, RetryAfter: 5 * time.Second}, Verdict{Kind: Refused, Said: "HTTP 402"}},
		"402 with an hour to wait":             {KindFacilitator, Prepaid, Answer{Status: 402, RetryAfter: time.Hour}, Verdict{Kind: Refused, Wait: time.Hour, Said: "HTTP 402"}},
		"402 of a node":                        {KindRPC, Daily, Answer{Status: 402, Code: 402, Text: "Payment Required"}, Verdict{Kind: Refused, Said: "HTTP 402"}},
		"401":                                  {KindFacilitator, Prepaid, Answer{Status: 401}, Verdict{Kind: Rejected, Said: "HTTP 401"}},
		"401 of a webhook":                     {KindWebhook, Rate, Answer{Status: 401}, Verdict{Kind: Rejected, Said: "HTTP 401"}},
		"429, free":                            {KindRPC, Rate, Answer{Status: 429}, Verdict{Kind: Slowed, Wait: slowWait, Said: "HTTP 429"}},
		"429, a balance":                       {KindFacilitator, Prepaid, Answer{Status: 429}, Verdict{Kind: Refused, Said: "HTTP 429"}},
		"429, a quota":                         {KindRPC, Daily, Answer{Status: 429}, Verdict{Kind: Refused, Said: "HTTP 429"}},
		"429 with a second less than a minute": {KindRPC, Daily, Answer{Status: 429, RetryAfter: minute - 1}, Verdict{Kind: Slowed, Wait: minute - 1, Said: "HTTP 429"}},
		"429 with a minute":                    {KindRPC, Rate, Answer{Status: 429, RetryAfter: minute}, Verdict{Kind: Refused, Wait: minute, Said: "HTTP 429"}},
		"429 with more":                        {KindFacilitator, Prepaid, Answer{Status: 429, RetryAfter: minute + 1}, Verdict{Kind: Refused, Wait: minute + 1, Said: "HTTP 429"}},
		"429 with a time in the past":          {KindRPC, Rate, Answer{Status: 429, RetryAfter: -time.Hour}, Verdict{Kind: Slowed, Wait: slowWait, Said: "HTTP 429"}},
		"429 of all a month, free":             {KindRPC, Rate, Answer{Status: 429, Text: "Monthly capacity limit exceeded. Visit …"}, Verdict{Kind: Refused, Said: "HTTP 429"}},
		"429 of a second, a quota":             {KindRPC, Daily, Answer{Status: 429, Text: "15/second request limit reached - reduce calls or upgrade"}, Verdict{Kind: Slowed, Wait: slowWait, Said: "HTTP 429"}},
		"403 of one payment":                   {KindFacilitator, Prepaid, Answer{Status: 403, Text: `{"error":"sanctioned"}`}, Verdict{Kind: Troubled, Said: "HTTP 403"}},
		"403 of a node":                        {KindRPC, Prepaid, Answer{Status: 403}, Verdict{Kind: Rejected, Said: "HTTP 403"}},
		"403 of a node that was not paid":      {KindRPC, Prepaid, Answer{Status: 403, Text: "endpoint disabled: past due payment"}, Verdict{Kind: Refused, Said: "HTTP 403"}},
		"403 of a webhook":                     {KindWebhook, Rate, Answer{Status: 403}, Verdict{Kind: Rejected, Said: "HTTP 403"}},
		"400 is what was asked":                {KindFacilitator, Prepaid, Answer{Status: 400, Text: `{"error":"insufficient_funds"}`}, Verdict{Kind: Troubled, Said: "HTTP 400"}},
		"400 that repeats a payer's words":     {KindFacilitator, Prepaid, Answer{Status: 400, Text: `{"error":"invalid resource /quota_exceeded?daily quota"}`}, Verdict{Kind: Troubled, Said: "HTTP 400"}},
		"400 by a word":                        {KindFacilitator, Prepaid, Answer{Status: 400, Text: `{"error":"quota_exceeded"}`}, Verdict{Kind: Refused, Said: "HTTP 400 quota_exceeded"}},
		"400 by a word inside":                 {KindFacilitator, Prepaid, Answer{Status: 400, Text: `{"error":{"code":"INSUFFICIENT-CREDITS","message":"x"}}`}, Verdict{Kind: Refused, Said: "HTTP 400 insufficient_credits"}},
		"403 by a word":                        {KindFacilitator, Rate, Answer{Status: 403, Text: `{"errorType":"payment_method_required","errorMessage":"x"}`}, Verdict{Kind: Refused, Said: "HTTP 403 payment_method_required"}},
		"503 by a word":                        {KindFacilitator, Prepaid, Answer{Status: 503, Text: "Out of credit"}, Verdict{Kind: Refused, Said: "HTTP 503 out_of_credit"}},
		"503 of the rate":                      {KindFacilitator, Rate, Answer{Status: 503, Text: `{"code":"rate_limited"}`, RetryAfter: 3 * time.Second}, Verdict{Kind: Slowed, Wait: 3 * time.Second, Said: "HTTP 503 rate_limited"}},
		"503":                                  {KindFacilitator, Prepaid, Answer{Status: 503, RetryAfter: time.Hour}, Verdict{Kind: Troubled, Said: "HTTP 503"}},
		"500":                                  {KindRPC, Daily, Answer{Status: 500, Text: "quota"}, Verdict{Kind: Troubled, Said: "HTTP 500"}},
		"a redirection":                        {KindWebhook, Rate, Answer{Status: 302}, Verdict{Kind: Troubled, Said: "HTTP 302"}},
		"a text that is too long to be looked at": {KindFacilitator, Prepaid, Answer{Status: 400, Text: `{"error":"quota_exceeded","x":"` + strings.Repeat("x", textMax) + `"}`}, Verdict{Kind: Troubled, Said: "HTTP 400"}},

		"a node answers":                    {KindRPC, Daily, Answer{Status: 200}, Verdict{Kind: Worked}},
		"a call reverted":                   {KindRPC, Daily, Answer{Status: 200, Code: 3, Text: "execution reverted: daily quota"}, Verdict{Kind: Worked}},
		"a nonce is too low":                {KindRPC, Daily, Answer{Status: 200, Code: -32000, Text: "nonce too low"}, Verdict{Kind: Worked}},
		"a method that there is not":        {KindRPC, Daily, Answer{Status: 200, Code: -32601}, Verdict{Kind: Worked}},
		"a transaction was rejected":        {KindRPC, Daily, Answer{Status: 200, Code: -32003, Text: "insufficient funds for gas"}, Verdict{Kind: Worked}},
		"a node's own trouble":              {KindRPC, Daily, Answer{Status: 200, Code: -32603}, Verdict{Kind: Troubled, Said: "JSON-RPC error -32603"}},
		"a limit, free":                     {KindRPC, Rate, Answer{Status: 200, Code: -32005, Text: "limit exceeded"}, Verdict{Kind: Slowed, Wait: slowWait, Said: "JSON-RPC error -32005"}},
		"a limit, a quota":                  {KindRPC, Daily, Answer{Status: 200, Code: -32005, Text: "limit exceeded"}, Verdict{Kind: Refused, Said: "JSON-RPC error -32005"}},
		"a limit of the day, free":          {KindRPC, Rate, Answer{Status: 200, Code: -32005, Text: "daily request count exceeded, request rate limited"}, Verdict{Kind: Refused, Said: "JSON-RPC error -32005"}},
		"a limit of one question":           {KindRPC, Daily, Answer{Status: 200, Code: -32005, Text: "query returned more than 10000 results"}, Verdict{Kind: Worked}},
		"-32029":                            {KindRPC, Rate, Answer{Status: 200, Code: -32029}, Verdict{Kind: Slowed, Wait: slowWait, Said: "JSON-RPC error -32029"}},
		"-32097":                            {KindRPC, Rate, Answer{Status: 200, Code: -32097}, Verdict{Kind: Slowed, Wait: slowWait, Said: "JSON-RPC error -32097"}},
		"-32016":                            {KindRPC, Rate, Answer{Status: 200, Code: -32016, Text: "over rate limit"}, Verdict{Kind: Slowed, Wait: slowWait, Said: "JSON-RPC error -32016"}},
		"-32007 of a second, a quota":       {KindRPC, Daily, Answer{Status: 200, Code: -32007, Text: "50/second request limit reached"}, Verdict{Kind: Slowed, Wait: slowWait, Said: "JSON-RPC error -32007"}},
		"429 as a code":                     {KindRPC, Rate, Answer{Status: 200, Code: 429, Text: "exceeded its compute units per second capacity"}, Verdict{Kind: Slowed, Wait: slowWait, Said: "JSON-RPC error 429"}},
		"402 as a code":                     {KindRPC, Rate, Answer{Status: 200, Code: 402}, Verdict{Kind: Refused, Said: "JSON-RPC error 402"}},
		"401 as a code":                     {KindRPC, Rate, Answer{Status: 200, Code: 401}, Verdict{Kind: Rejected, Said: "JSON-RPC error 401"}},
		"a limit of a node behind the node": {KindRPC, Rate, Answer{Status: 200, Code: -32000, Text: `429 Too Many Requests: {"jsonrpc":"2.0"}`}, Verdict{Kind: Slowed, Wait: slowWait, Said: "JSON-RPC error -32000"}},
		"a limit of the day by words alone": {KindRPC, Rate, Answer{Status: 200, Code: -32003, Text: "daily request limit reached - upgrade"}, Verdict{Kind: Refused, Said: "JSON-RPC error -32003"}},

		"a mail went":                    {KindMail, Rate, Answer{Code: 250}, Verdict{Kind: Worked}},
		"more is expected":               {KindMail, Rate, Answer{Code: 354}, Verdict{Kind: Worked}},
		"no relay answered":              {KindMail, Rate, Answer{}, Verdict{Kind: Troubled, Said: "SMTP 0"}},
		"a wrong password":               {KindMail, Rate, Answer{Code: 535, Text: "5.7.8 Error: authentication failed"}, Verdict{Kind: Rejected, Said: "SMTP 535"}},
		"no password":                    {KindMail, Rate, Answer{Code: 530}, Verdict{Kind: Rejected, Said: "SMTP 530"}},
		"a relay that closes":            {KindMail, Rate, Answer{Code: 421, Text: "4.3.2 shutting down"}, Verdict{Kind: Troubled, Said: "SMTP 421"}},
		"a relay that is asked too fast": {KindMail, Rate, Answer{Code: 421, Text: "4.7.0 Too many connections from your host"}, Verdict{Kind: Slowed, Wait: slowMailWait, Said: "SMTP 421"}},
		"450":                            {KindMail, Rate, Answer{Code: 450, Text: "4.7.1 greylisted"}, Verdict{Kind: Troubled, Said: "SMTP 450"}},
		"450 of the rate":                {KindMail, Rate, Answer{Code: 450, Text: "4.7.1 Rate limit exceeded"}, Verdict{Kind: Slowed, Wait: slowMailWait, Said: "SMTP 450"}},
		"451":                            {KindMail, Rate, Answer{Code: 451, Text: "4.3.0 local error"}, Verdict{Kind: Troubled, Said: "SMTP 451"}},
		"451 of all":                     {KindMail, Prepaid, Answer{Code: 451, Text: "Authentication failed: Maximum credits exceeded"}, Verdict{Kind: Refused, Said: "SMTP 451"}},
		"452 of the relay's disk":        {KindMail, Daily, Answer{Code: 452, Text: "4.3.1 insufficient system storage"}, Verdict{Kind: Troubled, Said: "SMTP 452"}},
		"452 of our quota":               {KindMail, Daily, Answer{Code: 452, Text: "4.5.3 daily sending quota reached"}, Verdict{Kind: Refused, Said: "SMTP 452"}},
		"452 of a full mailbox":          {KindMail, Daily, Answer{Code: 452, Text: "4.2.2 The email account is over quota"}, Verdict{Kind: Troubled, Said: "SMTP 452"}},
		"454 of the rate":                {KindMail, Daily, Answer{Code: 454, Text: "Throttling failure: Maximum sending rate exceeded."}, Verdict{Kind: Slowed, Wait: slowMailWait, Said: "SMTP 454"}},
		"454 of the day":                 {KindMail, Daily, Answer{Code: 454, Text: "Throttling failure: Daily message quota exceeded."}, Verdict{Kind: Refused, Said: "SMTP 454"}},
		"550 of our quota":               {KindMail, Daily, Answer{Code: 550, Text: "5.4.5 Daily user sending quota exceeded"}, Verdict{Kind: Refused, Said: "SMTP 550"}},
		"550 of an address":              {KindMail, Daily, Answer{Code: 550, Text: "5.1.1 no such user: quota"}, Verdict{Kind: Troubled, Said: "SMTP 550"}},
		"552 of our quota":               {KindMail, Daily, Answer{Code: 552, Text: "monthly quota exceeded"}, Verdict{Kind: Refused, Said: "SMTP 552"}},
		"552 of a full mailbox":          {KindMail, Daily, Answer{Code: 552, Text: "5.2.2 mailbox over quota"}, Verdict{Kind: Troubled, Said: "SMTP 552"}},
		"554":                            {KindMail, Daily, Answer{Code: 554, Text: "5.7.1 message rejected"}, Verdict{Kind: Troubled, Said: "SMTP 554"}},
		"554 of our quota":               {KindMail, Daily, Answer{Code: 554, Text: "5.7.0 quota exceeded"}, Verdict{Kind: Refused, Said: "SMTP 554"}},
		"500 of a relay":                 {KindMail, Daily, Answer{Code: 500, Text: "quota"}, Verdict{Kind: Troubled, Said: "SMTP 500"}},

		"a kind that there is not": {Kind(0), Rate, Answer{Status: 200}, Verdict{Kind: Troubled}},
	}
	for name, tt := range tests {
		if got := Classify(tt.kind, tt.runs, nil, tt.answer); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		answer Answer
		want   Verdict
	}{
		"a status and a text":       {Answer{Status: 403, Text: "your QUOTA is used up"}, Verdict{Kind: Refused, Said: "HTTP 403, a refusal by the configuration"}},
		"the status alone is not":   {Answer{Status: 403, Text: "go away"}, Verdict{Kind: Troubled, Said: "HTTP 403"}},
		"the text alone is not":     {Answer{Status: 400, Text: "your quota is used up"}, Verdict{Kind: Troubled, Said: "HTTP 400"}},
		"a text in a good answer":   {Answer{Status: 200, Text: `{"success":false,"errorReason":"trial period is over"}`}, Verdict{Kind: Refused, Said: "HTTP 200, a refusal by the configuration"}},
		"a status of its own":       {Answer{Status: 418, RetryAfter: time.Hour}, Verdict{Kind: Refused, Wait: time.Hour, Said: "HTTP 418, a refusal by the configuration"}},
		"a shape of nothing is not": {Answer{Status: 200, Text: "fine"}, Verdict{Kind: Worked}},
	} {
		if got := Classify(KindFacilitator, Prepaid, shapes, tt.answer); got != tt.want {
			t.Errorf("a configured shape, %s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// Whatever a source sends, there is a verdict that can be acted on, and nothing in it grows with what was sent.
func TestClassify_EveryAnswerHasAVerdict(t *testing.T) {
	t.Parallel()
	texts := []string{"", "daily quota", "rate limit", "4.2.2 over quota", `{"error":"quota_exceeded"}`, `{"error":`, strings.Repeat("quota ", 100), "\xff\x00"}
	codes := []int{0, 250, 402, 452, 535, -32000, -32005, -1 << 40}
	for kind := KindFacilitator; kind < kindEnd; kind++ {
		for runs := Rate; runs < runsOutEnd; runs++ {
			for _, text := range texts {
				for _, code := range codes {
					for _, status := range []int{-1, 0, 200, 400, 402, 403, 429, 503} {
						for _, wait := range []time.Duration{-time.Hour, outageMin - 1, 1 << 62} {
							a := Answer{Status: status, Code: code, Text: text, RetryAfter: wait}
							v := Classify(kind, runs, nil, a)
							good := Worked <= v.Kind && v.Kind < resultEnd && len(v.Said) <= 60
							switch v.Kind {
							case Slowed:
								good = good && 0 < v.Wait && v.Wait < outageMin
							case Refused:
								good = good && (v.Wait == 0 || v.Wait >= outageMin)
							case Worked, Rejected, Troubled:
								good = good && v.Wait == 0
							}
							if !good {
								t.Fatalf("%s, %s: %+v of %+v", kind, runs, v, a)
							}
						}
					}
				}
			}
		}
	}
}

func TestRPCNames_HoldNoCredentialAndNoPath(t *testing.T) {
	t.Parallel()
	got := RPCNames("eip155:1", []string{"https://me:hunter2@Node.example/v3/hunter2", "http://127.0.0.1:8545", "https://node.example/v2/other", "://hunter2"})
	want := []string{"rpc/eip155:1/node.example", "rpc/eip155:1/127.0.0.1:8545", "rpc/eip155:1/node.example#2", "rpc/eip155:1/unknown"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("name %d is %q, want %q", i, got[i], want[i])
		}
	}
}
