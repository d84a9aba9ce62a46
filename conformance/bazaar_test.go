package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/cmd/demo/samples"
	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/wire"
)

// declared is one challenge for bazaar.mjs, and judged what that finds of it.
type (
	declared struct {
		Name      string          `json:"name"`
		Challenge string          `json:"challenge"`
		Body      json.RawMessage `json:"body"`
	}
	judged struct {
		Name     string   `json:"name"`
		Errors   []string `json:"errors"`
		Method   string   `json:"method"`
		Resource string   `json:"resource"`
		Template string   `json:"template"`
		V1       *struct {
			Input struct {
				Body json.RawMessage `json:"body"`
			} `json:"input"`
		} `json:"v1"`
	}
)

func judge(t *testing.T, all []declared) []judged {
	t.Helper()
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	node := exec.CommandContext(t.Context(), "node", "bazaar.mjs")
	node.Stdin, node.Stdout, node.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := node.Run(); err != nil {
		t.Fatalf("node bazaar.mjs: %v\n%s", err, stderr.Bytes())
	}
	var out []judged
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil || len(out) != len(all) {
		t.Fatalf("%d of %d were judged: %v\n%s", len(out), len(all), err, stdout.Bytes())
	}
	return out
}

// challengeOf is what our server says of a listing.
func challengeOf(t *testing.T, l payment.Listing) (payment.Challenge, payment.Bazaar) {
	t.Helper()
	offer, err := payment.NewOffer(chain.Network{ID: "eip155:84532", ChainID: 84532, V1Name: "base-sepolia"},
		chain.Asset{Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), EIP712Name: "USDC", EIP712Version: "2"},
		money.FromUnits(12345), common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"), 120, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.NewReplacer("{", "of-", "}", "").Replace(l.Path)
	b := payment.NewBazaar(l)
	c, err := payment.NewChallenge(payment.Resource{URL: "https://shop.test" + path, Description: "d", MimeType: "application/json"},
		[]payment.Offer{offer}, payment.WithBazaar(b))
	if err != nil {
		t.Fatal(err)
	}
	return c, b
}

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// Whatever a listing looks like, its declaration is one that the official validator takes, or there is none.
func TestBazaar_EveryShapeOfListingIsTakenByTheOfficialValidator(t *testing.T) {
	t.Parallel()
	const city = `{"type":"object","required":["city"],"properties":{"city":{"type":"string","minLength":1,"pattern":"^[A-Z][a-z ]*$"}},"additionalProperties":false}`
	shapes := map[string]struct {
		listing  payment.Listing
		template string
		notes    int // how much of the listing stays out
	}{
		"POST json": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/v1/current", InputSchema: raw(city), InputExample: raw(`{"city":"Lima"}`),
			OutputSchema: raw(`{"type":"object"}`), OutputExample: raw(`{"temp_c":19}`), MIMEType: "application/json"}, "", 0},
		"PUT without an example":        {payment.Listing{Method: "PUT", TakesBody: true, Path: "/s/w/a", InputSchema: raw(city)}, "", 0},
		"PATCH without anything":        {payment.Listing{Method: "PATCH", TakesBody: true, Path: "/s/w/a"}, "", 0},
		"POST of a list":                {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a", InputSchema: raw(`{"type":"array","items":{"type":"integer"}}`), InputExample: raw(`[1,2]`)}, "", 0},
		"POST with path parameters":     {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/{a}/b/{c-d}", InputSchema: raw(city), InputExample: raw(`{"city":"Lima"}`)}, "/s/w/:a/b/:c-d", 0},
		"GET with query parameters":     {payment.Listing{Method: "GET", Path: "/s/w/a", InputSchema: raw(city), InputExample: raw(`{"city":"Lima"}`)}, "", 0},
		"GET with a repeated parameter": {payment.Listing{Method: "GET", Path: "/s/w/a", InputExample: raw(`{"city":["Lima","Quito"]}`)}, "", 0},
		"GET with path and query": {payment.Listing{Method: "GET", Path: "/s/w/city/{id}",
			InputSchema:  raw(`{"type":"object","required":["id","unit"],"properties":{"id":{"type":"string"},"unit":{"enum":["c","f"]}},"additionalProperties":false}`),
			InputExample: raw(`{"id":"lima","unit":"c"}`)}, "/s/w/city/:id", 0},
		"GET with parameters that hang together": {payment.Listing{Method: "GET", Path: "/s/w/city/{id}",
			InputSchema: raw(`{"type":"object","minProperties":2}`), InputExample: raw(`{"id":"lima","unit":"c"}`)}, "/s/w/city/:id", 1},
		"GET without anything":      {payment.Listing{Method: "GET", Path: "/s/w/"}, "", 0},
		"GET with odd literals":     {payment.Listing{Method: "GET", Path: "/s/w/:odd/@a+b,c=d$!/{id}"}, "/s/w/%3Aodd/%40a%2Bb%2Cc%3Dd%24%21/:id", 0},
		"HEAD":                      {payment.Listing{Method: "HEAD", Path: "/s/w/a", InputExample: raw(`{"q":"x"}`)}, "", 0},
		"DELETE":                    {payment.Listing{Method: "DELETE", Path: "/s/w/a/{id}", InputExample: raw(`{"id":"7"}`)}, "/s/w/a/:id", 0},
		"an answer that is no JSON": {payment.Listing{Method: "GET", Path: "/s/w/a", OutputExample: raw(`"a,b"`), MIMEType: "text/csv"}, "", 0},
		"an answer that is a list":  {payment.Listing{Method: "GET", Path: "/s/w/a", OutputSchema: raw(`{"type":"array"}`), OutputExample: raw(`[1]`)}, "", 0},
		"a schema with references": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object"}}}`), InputExample: raw(`{"a":1}`)}, "", 1},
		"a schema with a reference to elsewhere": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"properties":{"a":{"$id":"https://evil.example/x"}}}`), InputExample: raw(`{"a":1}`)}, "", 1},
		"a reference that is a value": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"default":{"$ref":"http://evil.example"}}`), InputExample: raw(`{"$ref":"http://evil.example"}`)}, "", 1},
		"a property called $ref": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"properties":{"$ref":{"type":"string"}}}`), InputExample: raw(`{"a":1}`)}, "", 1},
		"a schema of draft 7": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`), InputExample: raw(`["a"]`)}, "", 1},
		"a schema that names our draft": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`), InputExample: raw(`{}`)}, "", 0},
		"a pattern that JavaScript does not take": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"properties":{"a":{"pattern":"(?i)^x\\_$"}}}`), InputExample: raw(`{"a":"X_"}`)}, "", 1},
		"a keyword that throws in the official validator": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"properties":{"a":{"id":"x","nullable":true}}}`), InputExample: raw(`{"a":"X"}`)}, "", 1},
		"cents, which a double does not divide": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"properties":{"usd":{"type":"number","multipleOf":0.01}}}`), InputExample: raw(`{"usd":19.99}`)}, "", 1},
		"a schema that nests deeper than a header may": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(strings.Repeat(`{"properties":{"a":`, wire.DepthMax/2) + `{}` + strings.Repeat(`}}`, wire.DepthMax/2)), InputExample: raw(`{"a":{}}`)}, "", 1},
		"examples of numbers that JavaScript has no room for": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputExample: raw(`{"n":[1e400]}`), OutputExample: raw(`-1e400`)}, "", 2},
		"schemas that are too large": {payment.Listing{Method: "POST", TakesBody: true, Path: "/s/w/a",
			InputSchema: raw(`{"type":"object","description":"` + strings.Repeat("x", 4000) + `"}`), InputExample: raw(`{"a":1}`)}, "", 0},
	}
	var all []declared
	for name, shape := range shapes {
		c, b := challengeOf(t, shape.listing)
		if len(b.Notes()) != shape.notes {
			t.Errorf("%s: notes are %q, want %d", name, b.Notes(), shape.notes)
		}
		body, err := json.Marshal(c.Body(payment.Unpaid))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, declared{name, c.Header(payment.Unpaid), body})
	}
	for _, j := range judge(t, all) {
		shape := shapes[j.Name]
		if len(j.Errors) > 0 {
			t.Errorf("%s: %q", j.Name, j.Errors)
		}
		if j.Method != shape.listing.Method || j.Template != shape.template {
			t.Errorf("%s: catalogued as %s %s, template %q, want %q", j.Name, j.Method, j.Resource, j.Template, shape.template)
		}
		if shape.listing.TakesBody && shape.listing.InputExample != nil && shape.notes < 2 && (j.V1 == nil || string(j.V1.Input.Body) != string(shape.listing.InputExample)) {
			t.Errorf("%s: x402 v1 catalogues %+v", j.Name, j.V1)
		}
	}
}

// The declarations of the demo's own services, as the running server gives them out.
func TestBazaar_OfTheSampleServicesIsValid(t *testing.T) {
	t.Parallel()
	services, err := samples.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := services.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w := apptest.Start(t)
	var all []declared
	for _, listing := range services.Listings() {
		status, made := w.Admin(t, http.MethodPost, "/api/v1/services", listing)
		if status != http.StatusCreated {
			t.Fatalf("list: %d %v", status, made)
		}
		for _, e := range made["endpoints"].([]any) {
			e := e.(map[string]any)
			if e["warnings"] != nil {
				t.Errorf("%s has warnings: %v", e["url"], e["warnings"])
			}
			a := w.Send(t, apptest.Asking{Method: e["method"].(string), URL: e["url"].(string)}, "")
			if a.Status != http.StatusPaymentRequired {
				t.Fatalf("%s: %d %s", e["url"], a.Status, a.Body)
			}
			all = append(all, declared{e["url"].(string), a.Header.Get(payment.HeaderRequired), a.Body})
		}
	}
	for _, j := range judge(t, all) {
		if len(j.Errors) > 0 || j.Resource != j.Name {
			t.Errorf("%s: %q, catalogued as %s", j.Name, j.Errors, j.Resource)
		}
	}
}
