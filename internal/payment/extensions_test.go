package payment

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sent is what a client reads of a challenge.
type sentChallenge struct {
	Resource   Resource
	Extensions map[string]struct {
		Info   json.RawMessage
		Schema struct {
			Properties struct {
				Input struct{ Properties map[string]json.RawMessage }
			}
		}
	}
}

func sent(t testing.TB, c Challenge) sentChallenge {
	t.Helper()
	var s sentChallenge
	for _, code := range []Code{Unpaid, Code(strings.Repeat("x", codeBytesMax))} {
		h := c.Header(code)
		if len(h) > headerBytesWrittenMax {
			t.Errorf("PAYMENT-REQUIRED has %d bytes, want at most %d", len(h), headerBytesWrittenMax)
		}
		data, err := decodeHeader(HeaderRequired, h)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data.Raw, &s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s sentChallenge) has() string {
	names := slices.Sorted(maps.Keys(s.Extensions))
	return strings.Join(names, " ")
}

// listing has an example of so many bytes, and a schema of so many more.
func listing(exampleBytes, schemaBytes int) Listing {
	quoted := func(name string, n int) json.RawMessage {
		return json.RawMessage(`{"` + name + `":"` + strings.Repeat("x", n) + `"}`)
	}
	return Listing{Method: "POST", Path: "/s/w/v1", TakesBody: true, InputExample: quoted("a", exampleBytes), InputSchema: quoted("title", schemaBytes)}
}

// B11: whatever a listing says, the header stays under its limit, and what goes goes in one order.
func TestChallenge_LeavesOutInAFixedOrder(t *testing.T) {
	t.Parallel()
	o := offer(t, 12345, 1)
	terms := []Signed{signed(t, goldenTerms())}
	for name, tt := range map[string]struct {
		description, example, schema int
		want                         string // the extensions
		schemas, whole               bool   // of the bazaar declaration, of the description
		leftOut                      []string
	}{
		"all of a usual listing fits":                  {40, 20, 60, "bazaar offer-receipt payment-identifier", true, true, nil},
		"first the description is cut":                 {2000, 20, 60, "bazaar offer-receipt payment-identifier", true, false, []string{"of the description"}},
		"then the signed terms go":                     {400, 20, 1300, "bazaar payment-identifier", true, true, []string{"signed terms"}},
		"then the schemas of the declaration":          {400, 20, 2500, "bazaar payment-identifier", false, true, []string{"schemas", "signed terms"}},
		"then the declaration":                         {400, 2900, 20, "payment-identifier", false, true, []string{"bazaar declaration", "signed terms"}},
		"a sentence of the description outlives those": {2900, 20, 1600, "bazaar payment-identifier", true, false, []string{"of the description", "signed terms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			description := strings.Repeat("d", tt.description)
			c, err := NewChallenge(echo(description), []Offer{o}, WithBazaar(NewBazaar(listing(tt.example, tt.schema))), WithSigned(terms))
			if err != nil {
				t.Fatal(err)
			}
			s := sent(t, c)
			if s.has() != tt.want {
				t.Errorf("extensions = %s, want %s", s.has(), tt.want)
			}
			if got := len(s.Extensions[bazaarKey].Schema.Properties.Input.Properties["body"]) > 10; got != tt.schemas {
				t.Errorf("has the schemas: %v, want %v", got, tt.schemas)
			}
			if got := s.Resource.Description == description; got != tt.whole {
				t.Errorf("has the whole description: %v, want %v", got, tt.whole)
			}
			if !tt.whole && len(s.Resource.Description) < descriptionBytesKept {
				t.Errorf("of the description %d bytes are left", len(s.Resource.Description))
			}
			if got := c.LeftOut(); len(got) != len(tt.leftOut) {
				t.Errorf("left out: %q, want %q", got, tt.leftOut)
			} else {
				for i, part := range tt.leftOut {
					if !strings.Contains(got[i], part) {
						t.Errorf("left out: %q, want %q", got, tt.leftOut)
					}
				}
			}
		})
	}
}

func TestChallenge_PaymentIdentifierGoesLast(t *testing.T) {
	t.Parallel()
	r := Resource{URL: "https://shop.test/" + strings.Repeat("a", 2500)}
	c, err := NewChallenge(r, []Offer{offer(t, 12345, 1)}, WithBazaar(NewBazaar(listing(1, 1))), WithSigned([]Signed{signed(t, goldenTerms())}))
	if err != nil {
		t.Fatal(err)
	}
	if got := sent(t, c).has(); got != "" || len(c.Infos()) != 0 {
		t.Errorf("extensions = %q, infos %v, want none", got, c.Infos())
	}
	if got := c.LeftOut(); len(got) != 3 || !strings.Contains(got[0], "payment-identifier") {
		t.Errorf("left out: %q", got)
	}
}

func TestChallenge_AnyListingFits(t *testing.T) {
	t.Parallel()
	terms := []Signed{signed(t, goldenTerms())}
	o := offer(t, 12345, 1)
	text := rapid.Rune().Filter(func(r rune) bool { return r != 0 }) // which no listing has
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(0, 3500)
		c, err := NewChallenge(echo(rapid.StringOfN(text, 0, -1, 3000).Draw(rt, "description")), []Offer{o},
			WithBazaar(NewBazaar(listing(size.Draw(rt, "example"), size.Draw(rt, "schema")))), WithSigned(terms))
		if err != nil {
			rt.Fatal(err)
		}
		for key, info := range c.Infos() {
			if got := string(sent(t, c).Extensions[key].Info); got != string(info) {
				rt.Errorf("info of %s = %s, want %s", key, got, info)
			}
		}
	})
}

// What a client has to bring back is what the challenge says, but for signatures that differ from challenge to challenge.
func TestChallenge_InfosAreThoseThatDoNotChange(t *testing.T) {
	t.Parallel()
	c, err := NewChallenge(echo("d"), []Offer{offer(t, 12345, 1)}, WithBazaar(NewBazaar(listing(3, 3))), WithSigned([]Signed{signed(t, goldenTerms())}))
	if err != nil {
		t.Fatal(err)
	}
	infos := c.Infos()
	if got := strings.Join(slices.Sorted(maps.Keys(infos)), " "); got != "bazaar payment-identifier" {
		t.Errorf("infos of %s", got)
	}
	if got, want := string(infos[bazaarKey]), `{"input":{"type":"http","method":"POST","bodyType":"json","body":{"a":"xxx"}}}`; got != want {
		t.Errorf("info of the bazaar declaration = %s, want %s", got, want)
	}
}

func TestSignTerms_SignsEveryOfferOrNone(t *testing.T) {
	t.Parallel()
	k := key(t)
	ours := offer(t, 12345, 1)
	ours.PayTo = k.Address()
	theirs := offer(t, 12345, 1)
	n := NewNotary(k)
	all, err := SignTerms(n, echo(""), []Offer{ours, ours}, 1800000000)
	if err != nil || len(all) != 2 {
		t.Fatalf("SignTerms = %v, %v", all, err)
	}
	if who, err := all[0].Signer(); err != nil || who != ours.PayTo {
		t.Errorf("signed by %s, %v", who, err)
	}
	if some, err := SignTerms(n, echo(""), []Offer{ours, theirs}, 1800000000); err != nil || some != nil {
		t.Errorf("of two offers, one to another wallet: %v, %v", some, err)
	}
}

func TestBazaar_Bytes(t *testing.T) {
	t.Parallel()
	b := NewBazaar(Listing{Method: "GET", Path: "/s/w/city/{id}", MIMEType: "application/json",
		InputSchema:  json.RawMessage(`{"type":"object","required":["id","unit"],"properties":{"id":{"type":"string"},"unit":{"enum":["c","f"]}}}`),
		InputExample: json.RawMessage(`{"id":"lima","unit":"c"}`), OutputExample: json.RawMessage(`{"temp_c":19}`)})
	const want = `{"routeTemplate":"/s/w/city/:id",` +
		`"info":{"input":{"type":"http","method":"GET","pathParams":{"id":"lima"},"queryParams":{"unit":"c"}},"output":{"type":"json","example":{"temp_c":19}}},` +
		`"schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["input"],"properties":{` +
		`"input":{"type":"object","required":["type","method"],"additionalProperties":false,"properties":{` +
		`"method":{"type":"string","enum":["GET"]},"pathParams":{"properties":{"id":{"type":"string"}},"type":"object"},` +
		`"queryParams":{"properties":{"unit":{"enum":["c","f"]}},"required":["unit"],"type":"object"},"type":{"const":"http"}}},` +
		`"output":{"type":"object","required":["type"],"properties":{"example":{},"type":{"const":"json"}}}}}}`
	if got := string(b.Full()); got != want {
		t.Errorf("declaration =\n%s, want\n%s", got, want)
	}
	const wantV1 = `{"input":{"type":"http","method":"GET","discoverable":true,"pathParams":{"id":"lima"},"queryParams":{"unit":"c"}},"output":{"temp_c":19}}`
	if got := string(b.V1()); got != wantV1 {
		t.Errorf("outputSchema of v1 = %s, want %s", got, wantV1)
	}
}

// The v1 client throws the whole answer away for an outputSchema of null.
func TestChallenge_V1HasNoOutputSchemaOrOneThatIsAnObject(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]Addition{"without a listing": nil, "of a listing": {WithBazaar(NewBazaar(listing(3, 3)))},
		"of a long listing": {WithBazaar(NewBazaar(listing(2*v1SchemaBytesMax, 3)))}} {
		c, err := NewChallenge(echo(""), []Offer{offer(t, 1, 1)}, more...)
		if err != nil {
			t.Fatal(err)
		}
		var entry map[string]json.RawMessage
		if err := json.Unmarshal(encodeJSON(c.Body(Unpaid).Accepts[0]), &entry); err != nil {
			t.Fatal(err)
		}
		schema, there := entry["outputSchema"]
		if there != (more != nil) || there && (schema[0] != '{' || len(schema) > v1SchemaBytesMax) {
			t.Errorf("%s: outputSchema = %s", name, schema)
		}
	}
}

func TestPortableSchema_TakesWhatEveryValidatorReadsAlike(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":["string","null"],"minLength":1,"format":"date"}},"required":["a"]}`: "",
		`{"anyOf":[{"minimum":0.5},{"exclusiveMaximum":-3}],"items":{"multipleOf":5}}`:                                   "",
		`{"properties":{"a":{"pattern":"^[A-Z][a-z -]{1,20}\\.[0-9]+$"}}}`:                                               "",
		`{"additionalProperties":false,"items":true}`:                                                                    "",
		`{"enum":[{"a":[1,"x"]}],"default":null}`:                                                                        "",
		`{"pattern":"a|b"}`:                       "pattern",
		`{"pattern":"\\p{L}"}`:                    "pattern",
		`{"pattern":"{"}`:                         "pattern",
		`{"pattern":"[z\\-a]"}`:                   "pattern",
		`{"minimum":1e400}`:                       "round",
		`{"minimum":1234567890123456789}`:         "round",
		`{"multipleOf":0.1}`:                      "round",
		`{"const":{"$ref":"x"}}`:                  "$ref",
		`{"allOf":[{"$anchor":"x"}]}`:             "$anchor",
		`{"not":{"unevaluatedProperties":false}}`: "unevaluatedProperties",
		`{"patternProperties":{"^a":{}}}`:         "patternProperties",
		`{"` + strings.Repeat("x", 100) + `":1}`:  "a keyword of its own",
		`[]`:                                      "not an object",
	} {
		_, why := portableSchema(json.RawMessage(schema))
		if (want == "") != (why == "") || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", schema, why, want)
		}
	}
}
