package payment

import (
	"encoding/json"
	"strings"
	"testing"

	"market/internal/call"
)

// advertised is a challenge with everything that x402 has for a service: what is sold, and offers that are signed anew each time.
func advertised() Advertised {
	all := Extensions()
	all["bazaar"] = json.RawMessage(`{"input":{"type":"http","method":"POST","bodyType":"json","body":{"city":"Київ","days":1.50}},"output":{"type":"json","example":[1,{"a":null}]}}`)
	all["sold"] = json.RawMessage(`{"city":"Київ","days":1.50,"list":[1,{"a":null}]}`) // an extension that has nothing dynamic
	all["offer-receipt"] = json.RawMessage(`{"offers":[{"format":"eip712","signature":"0x01"}],"version":1}`)
	return all
}

func sold(info string) string { return `{"sold":{"info":` + info + `}}` }

func bazaar(body, output string) string {
	return `{"bazaar":{"info":{"input":{"type":"http","method":"POST","bodyType":"json","body":` + body + `},"output":` + output + `}}}`
}

func TestMatch_TakesAnEchoThatHoldsWhatWeSaid(t *testing.T) {
	t.Parallel()
	const output = `{"type":"json","example":[1,{"a":null}]}`
	for name, extensions := range map[string]string{
		"nothing":                              `{}`,
		"null for one of ours":                 `{"bazaar":null}`,
		"as it was said":                       bazaar(`{"city":"Київ","days":1.50}`, output),
		"in another order and spelling":        bazaar(`{"days":1.5,"city":"\u041aиїв"}`, output),
		"another spelling of the same":         sold(`{"list":[1,{"a":null}],"days":1.5,"city":"\u041aиїв"}`),
		"with members of the client's":         bazaar(`{"city":"Київ","days":1.5,"mine":[1]}`, `{"type":"json","example":[1,{"a":null}],"note":""}`),
		"with a schema of the client's":        strings.Replace(bazaar(`{"city":"Київ","days":1.5}`, output), `{"info"`, `{"schema":7,"info"`, 1),
		"examples of before an edit":           bazaar(`{"town":7}`, `{"type":"text","example":"x"}`),
		"no output":                            `{"bazaar":{"info":{"input":{"type":"http","method":"POST","bodyType":"json"}}}}`,
		"offers of another challenge":          `{"offer-receipt":{"info":{"version":1,"offers":[]}}}`,
		"no offers at all":                     `{"offer-receipt":{"info":{"version":1}}}`,
		"an extension that we know nothing of": `{"sign-in-with-x":{"info":7},"bazaar2":[]}`,
		"all of ours":                          strings.TrimSuffix(bazaar(`{"city":"Київ","days":1.5}`, output), "}") + `,` + info(`"required":false`)[1:],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Match(decoded(t, extended(t, extensions)), []Offer{offer(t, 12345, 1)}, goldenResource, advertised()); err != nil {
				t.Errorf("Match: %v", err)
			}
		})
	}
}

func TestMatch_RefusesAnEchoThatLacksOrChangesWhatWeSaid(t *testing.T) {
	t.Parallel()
	const output = `{"type":"json","example":[1,{"a":null}]}`
	for name, test := range map[string]struct{ extensions, key string }{
		"no info":                      {`{"bazaar":{}}`, "bazaar"},
		"info is null":                 {`{"bazaar":{"info":null}}`, "bazaar"},
		"info is empty":                {`{"bazaar":{"info":{}}}`, "bazaar"},
		"info is a list":               {`{"bazaar":{"info":[]}}`, "bazaar"},
		"a declaration that is text":   {`{"bazaar":"x"}`, "bazaar"},
		"another method":               {strings.Replace(bazaar(`{}`, output), "POST", "GET", 1), "bazaar"},
		"a member less, deep inside":   {`{"bazaar":{"info":{"input":{"type":"http","method":"POST"}}}}`, "bazaar"},
		"another type, deep inside":    {strings.Replace(bazaar(`{}`, output), `"http"`, `1`, 1), "bazaar"},
		"the input is a list":          {`{"bazaar":{"info":{"input":[]}}}`, "bazaar"},
		"another text, deep inside":    {sold(`{"city":"Kyiv","days":1.5,"list":[1,{"a":null}]}`), "sold"},
		"another number":               {sold(`{"city":"Київ","days":1.51,"list":[1,{"a":null}]}`), "sold"},
		"a number as text":             {sold(`{"city":"Київ","days":"1.5","list":[1,{"a":null}]}`), "sold"},
		"an item more in a list":       {sold(`{"city":"Київ","days":1.5,"list":[1,{"a":null},2]}`), "sold"},
		"a null less":                  {sold(`{"city":"Київ","days":1.5,"list":[1,{}]}`), "sold"},
		"what is not dynamic, changed": {`{"offer-receipt":{"info":{"version":2,"offers":[]}}}`, "offer-receipt"},
		"one of two":                   {`{"offer-receipt":{"info":{"version":1}},"bazaar":{"info":{}}}`, "bazaar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Match(decoded(t, extended(t, test.extensions)), []Offer{offer(t, 12345, 1)}, goldenResource, advertised())
			wantRefusal(t, err, call.PaymentMismatch, CodeExtensionEcho, "extensions."+test.key+".info must hold all")
		})
	}
}

// A client holds what it was shown for as long as its price holds, and what we said of it is not used up by looking at it.
func TestMatch_LeavesWhatIsAdvertisedAlone(t *testing.T) {
	t.Parallel()
	ours := advertised()
	p := decoded(t, extended(t, `{"offer-receipt":{"info":{"version":1}}}`))
	for range 2 {
		if _, err := Match(p, []Offer{offer(t, 12345, 1)}, goldenResource, ours); err != nil {
			t.Errorf("Match: %v", err)
		}
	}
	if string(ours["offer-receipt"]) != string(advertised()["offer-receipt"]) {
		t.Errorf("what is advertised became %s", ours["offer-receipt"])
	}
}

func TestMatch_WhatWeCannotReadOurselvesIsNoFaultOfTheCaller(t *testing.T) {
	t.Parallel()
	p := decoded(t, extended(t, `{"bazaar":{"info":{}}}`))
	_, err := Match(p, []Offer{offer(t, 12345, 1)}, goldenResource, Advertised{"bazaar": json.RawMessage(`{`)})
	if err == nil || reasonOf(err) != "" {
		t.Errorf("Match = %v, want an error that is no refusal", err)
	}
}

// Every challenge says what Extensions says, so that Match asks for nothing that no client was shown.
func TestExtensions_AreWhatTheChallengeAdvertises(t *testing.T) {
	t.Parallel()
	var sent struct {
		Extensions map[string]struct{ Info json.RawMessage }
	}
	if err := json.Unmarshal([]byte(decodedHeader(t, challenge(t, echo(""), offer(t, 12345, 1)).Header(Unpaid))), &sent); err != nil {
		t.Fatal(err)
	}
	for key, info := range Extensions() {
		if got := string(sent.Extensions[key].Info); got != string(info) {
			t.Errorf("the challenge says %s of %s, want %s", got, key, info)
		}
	}
}
