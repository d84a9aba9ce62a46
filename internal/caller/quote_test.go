package caller

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"market/internal/payment"
)

const plainEntry = `{"scheme":"exact","network":"eip155:84532","amount":"2000","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e",` +
	`"payTo":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC","maxTimeoutSeconds":120,"extra":{"name":"USDC","version":"2"}}`

func challengeOf(t *testing.T, entries ...string) payment.Required {
	t.Helper()
	document := `{"x402Version":2,"accepts":[` + strings.Join(entries, ",") + `]}`
	r, err := payment.DecodeChallenge(base64.StdEncoding.EncodeToString([]byte(document)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestChoose_SkipsWhatItCanNotPay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ old, with, why string }{
		"another scheme":             {`"exact"`, `"upto"`, "scheme"},
		"another kind of chain":      {`eip155:84532`, `solana:84532`, "chain"},
		"a chain id beyond 64 bits":  {`eip155:84532`, `eip155:99999999999999999999999`, "chain"},
		"the token of another chain": {`eip155:84532`, `eip155:8453`, "not known"},
		"Permit2":                    {`{"name"`, `{"assetTransferMethod":"permit2","name"`, "transfer method"},
		"money held in escrow":       {`{"name"`, `{"paymentFlow":"escrow","name"`, "flow"},
		"no name":                    {`"name"`, `"nom"`, "EIP-712"},
		"no version":                 {`"version"`, `"v"`, "EIP-712"},
		"nothing to pay":             {`"2000"`, `"0"`, "nothing to pay"},
		"nobody to pay":              {`0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC`, `0x0000000000000000000000000000000000000000`, "nobody"},
		"no time":                    {`120`, `0`, "3600 s"},
		"an authorization for a day": {`120`, `86400`, "3600 s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			odd := strings.Replace(plainEntry, test.old, test.with, 1)
			if _, err := (&Client{}).choose(challengeOf(t, odd)); !errors.Is(err, ErrNoOffer) || !strings.Contains(err.Error(), test.why) {
				t.Errorf("error = %v, want ErrNoOffer for %q", err, test.why)
			}
			dearer := strings.Replace(plainEntry, "2000", "3000", 1)
			o, err := (&Client{}).choose(challengeOf(t, odd, dearer, plainEntry))
			if err != nil || o.quote.Amount.String() != "3000" {
				t.Errorf("choice = %+v, %v, want the second entry", o.quote, err)
			}
		})
	}
}

func TestChoose_TakesTheFlowsThatItKnows(t *testing.T) {
	t.Parallel()
	for _, extra := range []string{`"paymentFlow":"upfront",`, `"paymentFlow":"authorization",`, `"assetTransferMethod":"eip3009",`, ``} {
		if _, err := (&Client{}).choose(challengeOf(t, strings.Replace(plainEntry, `{"name"`, `{`+extra+`"name"`, 1))); err != nil {
			t.Errorf("%s: %v", extra, err)
		}
	}
}

func TestChoose_SaysThatThereIsNothing(t *testing.T) {
	t.Parallel()
	if _, err := (&Client{}).choose(challengeOf(t)); !errors.Is(err, ErrNoOffer) {
		t.Errorf("error = %v, want ErrNoOffer", err)
	}
	if _, err := (&Client{}).choose(challengeOf(t, `{"scheme":"exact","network":"solana:x"}`)); err == nil || !strings.Contains(err.Error(), "1 for other") {
		t.Errorf("error = %v, want a count of the others", err)
	}
}
