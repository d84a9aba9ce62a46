package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

func settled(change func(map[string]string)) string {
	members := map[string]string{
		"success": `true`, "transaction": `"` + hash + `"`, "network": `"eip155:84532"`, "payer": `"` + payer + `"`,
	}
	if change != nil {
		change(members)
	}
	var parts []string
	for _, name := range []string{"success", "errorReason", "transaction", "network", "payer", "extra"} {
		if value, ok := members[name]; ok {
			parts = append(parts, `"`+name+`":`+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func with(pairs ...string) string {
	return settled(func(m map[string]string) {
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
			if pairs[i+1] == "" {
				delete(m, pairs[i])
			}
		}
	})
}

func no(reason string, pairs ...string) string {
	return with(append([]string{"success", "false", "errorReason", `"` + reason + `"`, "transaction", `""`}, pairs...)...)
}

const html = "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>"

// Whatever a facilitator answers has one classification, and only one kind of answer is a yes. B63, B68, B70, B71, and the redirect of #1692.
func TestClient_Settle_EveryAnswerIsClassified(t *testing.T) {
	t.Parallel()
	named := common.HexToHash(hash)
	tests := map[string]struct {
		answer      http.HandlerFunc
		kind        Kind
		fault       Fault // 0: none
		transaction common.Hash
		blame       Blame
	}{
		"a plain yes":                               {says(200, settled(nil)), Paid, 0, named, 0},
		"a yes with 201":                            {says(201, settled(nil)), Paid, 0, named, 0},
		"a yes in the name of v1":                   {says(200, with("network", `"base-sepolia"`)), Paid, 0, named, 0},
		"a yes with the payer in lower case":        {says(200, with("payer", `"`+strings.ToLower(payer)+`"`)), Paid, 0, named, 0},
		"a yes without a payer":                     {says(200, with("payer", "")), Paid, 0, named, 0},
		"a yes with a payer of null":                {says(200, with("payer", "null")), Paid, 0, named, 0},
		"a yes with members that we do not know":    {says(200, with("extra", `{"a":[1,{"b":null}]}`)), Paid, 0, named, 0},
		"a yes without a transaction":               {says(200, with("transaction", `""`)), Unclear, NoTransaction, common.Hash{}, 0},
		"a yes with a transaction of null":          {says(200, with("transaction", "null")), Unclear, NoTransaction, common.Hash{}, 0},
		"a yes with a short transaction":            {says(200, with("transaction", `"0x123"`)), Unclear, NoTransaction, common.Hash{}, 0},
		"a yes with a transaction of zeros":         {says(200, with("transaction", `"0x`+strings.Repeat("0", 64)+`"`)), Unclear, NoTransaction, common.Hash{}, 0},
		"a yes with a transaction that is a number": {says(200, with("transaction", "7")), Unclear, BadShape, common.Hash{}, 0},
		"a yes on another network":                  {says(200, with("network", `"eip155:8453"`)), Unclear, OtherNetwork, named, 0},
		"a yes on no network":                       {says(200, with("network", `""`)), Unclear, OtherNetwork, named, 0},
		"a yes for another payer":                   {says(200, with("payer", `"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"`)), Unclear, OtherPayer, named, 0},
		"a yes for a payer that is none":            {says(200, with("payer", `"you"`)), Unclear, OtherPayer, named, 0},
		"a yes with a reason why not":               {says(200, with("errorReason", `"insufficient_funds"`)), Unclear, Contradiction, named, 0},
		"a yes that is a string":                    {says(200, with("success", `"true"`)), Unclear, BadShape, common.Hash{}, 0},
		"a yes that is a number":                    {says(200, with("success", "1")), Unclear, BadShape, common.Hash{}, 0},
		"yes and no":                                {says(200, `{"success":true,"success":false,"transaction":"`+hash+`","network":"eip155:84532"}`), Unclear, BadShape, common.Hash{}, 0},
		"a yes in other letters":                    {says(200, with("success", "", "Success", "true")), Unclear, BadShape, common.Hash{}, 0},
		"a yes with 400":                            {says(400, settled(nil)), Unclear, Contradiction, named, 0},
		"a yes with 402":                            {says(402, settled(nil)), Unclear, Contradiction, named, 0},
		"a yes with 500":                            {says(500, settled(nil)), Unclear, Contradiction, named, 0},
		"a yes with 429":                            {says(429, settled(nil)), Refused, Throttled, common.Hash{}, 0},

		"no funds":                         {says(200, no("insufficient_funds")), Declined, 0, common.Hash{}, BlamePayer},
		"no funds, and no other member":    {says(200, `{"success":false,"errorReason":"insufficient_funds"}`), Declined, 0, common.Hash{}, BlamePayer},
		"no funds, with empty members":     {says(200, no("insufficient_funds", "network", `""`, "payer", `""`)), Declined, 0, common.Hash{}, BlamePayer},
		"the nonce is used":                {says(200, no("invalid_exact_evm_nonce_already_used")), Declined, 0, common.Hash{}, BlamePayer},
		"undone on the chain":              {says(200, no("invalid_exact_evm_transaction_failed", "transaction", `"`+hash+`"`)), Declined, 0, named, BlameEither},
		"an unexpected error":              {says(200, no("unexpected_settle_error")), Declined, 0, common.Hash{}, BlameNone},
		"a no of a code that is not known": {says(200, no("the_moon_is_full")), Declined, 0, common.Hash{}, BlameEither},
		"a no that is prose":               {says(200, no("Sorry! <script>")), Declined, 0, common.Hash{}, BlameEither},
		"a no without a reason":            {says(200, `{"success":false}`), Declined, 0, common.Hash{}, BlameEither},
		"a no with 400":                    {says(400, no("insufficient_funds")), Declined, 0, common.Hash{}, BlamePayer},
		"a no with 402":                    {says(402, no("insufficient_funds")), Declined, 0, common.Hash{}, BlamePayer},
		"a no with 500":                    {says(500, no("insufficient_funds")), Unclear, Failing, common.Hash{}, 0},

		"pending":                       {says(200, no("settlement_pending", "transaction", `"`+hash+`"`)), Pending, 0, named, 0},
		"pending with 503":              {says(503, no("settlement_pending", "transaction", `"`+hash+`"`)), Pending, 0, named, 0},
		"pending without a transaction": {says(200, no("settlement_pending")), Unclear, NoTransaction, common.Hash{}, 0},

		"HTML":                       {says(200, html), Unclear, NotJSON, common.Hash{}, 0},
		"HTML with 502":              {says(502, html), Unclear, Failing, common.Hash{}, 0},
		"nothing":                    {says(200, ""), Unclear, NotJSON, common.Hash{}, 0},
		"204":                        {says(204, ""), Unclear, NotJSON, common.Hash{}, 0},
		"an empty object":            {says(200, "{}"), Unclear, BadShape, common.Hash{}, 0},
		"a list":                     {says(200, "["+settled(nil)+"]"), Unclear, BadShape, common.Hash{}, 0},
		"null":                       {says(200, "null"), Unclear, BadShape, common.Hash{}, 0},
		"half of a yes":              {says(200, settled(nil)[:60]), Unclear, NotJSON, common.Hash{}, 0},
		"two answers":                {says(200, settled(nil)+settled(nil)), Unclear, NotJSON, common.Hash{}, 0},
		"a yes that is too long":     {says(200, strings.Repeat(" ", answerMax)+settled(nil)), Unclear, TooLarge, common.Hash{}, 0},
		"more than anybody can read": {floods, Unclear, TooLarge, common.Hash{}, 0},
		"a nest":                     {says(200, with("extra", strings.Repeat("[", 5000)+strings.Repeat("]", 5000))), Unclear, BadShape, common.Hash{}, 0},
		"a redirect":                 {redirects(308), Unclear, Redirected, common.Hash{}, 0},
		"another redirect":           {redirects(302), Unclear, Redirected, common.Hash{}, 0},
		"not modified":               {says(304, ""), Unclear, Redirected, common.Hash{}, 0},
		"our credential is no good":  {says(401, `{"error":"unauthorized"}`), Refused, Unauthorized, common.Hash{}, 0},
		"we may not":                 {says(403, html), Refused, Turned, common.Hash{}, 0},
		"it wants to be paid":        {says(402, `{"x402Version":1,"accepts":[]}`), Refused, Unpaid, common.Hash{}, 0},
		"it wants to be paid, bare":  {says(402, ""), Refused, Unpaid, common.Hash{}, 0},
		"no HTTP":                    {noHTTP, Unclear, Broken, common.Hash{}, 0},
		"too many requests":          {says(429, ""), Refused, Throttled, common.Hash{}, 0},
		"not found":                  {says(404, html), Refused, Turned, common.Hash{}, 0},
		"a bad request":              {says(400, `{"error":"Invalid payment"}`), Refused, Turned, common.Hash{}, 0},
		"trouble":                    {says(500, `{"error":"oops"}`), Unclear, Failing, common.Hash{}, 0},
		"it hangs up":                {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unclear, Broken, common.Hash{}, 0},
		"it hangs up in between":     {hangsUp, Unclear, Broken, common.Hash{}, 0},
		"it never answers":           {waits, Unclear, TimedOut, common.Hash{}, 0},
		"it never ends":              {drips, Unclear, TimedOut, common.Hash{}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, tt.answer)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if tt.fault == TimedOut {
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			got := settle(ctx, d.client(t, nil))
			if got.Kind != tt.kind || got.Transaction != tt.transaction || got.Blame != tt.blame {
				t.Errorf("answer %+v, want kind %d, transaction %s, blame %d", got, tt.kind, tt.transaction, tt.blame)
			}
			var fault Fault
			if trouble, ok := errors.AsType[*Trouble](got.Err); ok {
				fault = trouble.Fault
			}
			if fault != tt.fault || (got.Err == nil) != (got.Kind == Paid) {
				t.Errorf("error %v, want one of fault %q", got.Err, tt.fault)
			}
			if got.Err != nil && strings.ContainsAny(got.Err.Error(), "<!{") {
				t.Errorf("error %q repeats what the facilitator wrote", got.Err)
			}
			if got.Err != nil && len(got.Err.Error()) > 2*wayBytesMax {
				t.Errorf("error of %d bytes", len(got.Err.Error()))
			}
		})
	}
}

// redirects answers with a redirect to a place that would say yes.
func redirects(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("again") {
			says(200, settled(nil))(w, r)
			return
		}
		w.Header().Set("Location", r.URL.Path+"?again")
		w.WriteHeader(status)
	}
}

// hangsUp promises more than it sends.
func hangsUp(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "5000")
	_, _ = w.Write([]byte(settled(nil)))
	panic(http.ErrAbortHandler)
}

// noHTTP answers with a long line that is no HTTP.
func noHTTP(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = connection.Write([]byte(strings.Repeat("<!{", 4000) + "\r\n\r\n"))
	_ = connection.Close()
}

func waits(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// floods sends for as long as anybody reads.
func floods(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
			return
		}
	}
}

// drips sends a yes and does not end.
func drips(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(settled(nil)))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// What no answer can do: be a yes without a transaction of its own, on our network, for our payer; or bring us down.
func FuzzSettleAnswer(f *testing.F) {
	for _, body := range []string{settled(nil), no("insufficient_funds"), no("settlement_pending", "transaction", `"`+hash+`"`), html, "", "{}", "null",
		`{"success":true}`, with("payer", `"0x"`), with("transaction", `"0x123"`), with("network", "[]"), settled(nil)[:40], `{"success":true,"success":true}`} {
		for _, status := range []int{200, 204, 308, 400, 402, 429, 500, 503} {
			f.Add(status, []byte(body))
		}
	}
	want := expected{networks: []string{network.ID, network.V1Name}, payer: signed.From}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		got, fault := settleAnswer(status, body, want)
		if got.Kind < Paid || got.Kind > Unclear || got.Kind == Unsent {
			t.Errorf("kind %d of an answer that came", got.Kind)
		}
		if (got.Kind == Paid || got.Kind == Pending || got.Kind == Declined) != (fault == 0) {
			t.Errorf("kind %d with fault %q", got.Kind, fault)
		}
		if (got.Kind == Paid || got.Kind == Pending) && got.Transaction == (common.Hash{}) {
			t.Errorf("kind %d without a transaction", got.Kind)
		}
		if got.Kind == Paid && status/100 != 2 {
			t.Errorf("a yes with status %d", status)
		}
		if got.Code != "" && !codeForm.MatchString(got.Code) {
			t.Errorf("code %q", got.Code)
		}
		if v, fault := verifyAnswer(status, body, signed.From); v.Valid && (fault != 0 || status/100 != 2) {
			t.Errorf("verdict %+v with fault %q and status %d", v, fault, status)
		}
		if kinds, fault := supportedAnswer(status, body); len(kinds) > 0 && (fault != 0 || status/100 != 2) {
			t.Errorf("kinds %v with fault %q and status %d", kinds, fault, status)
		}
	})
}
