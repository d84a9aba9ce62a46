package payment

import (
	"encoding/json"
	"testing"
)

func FuzzReadSigned(f *testing.F) {
	for _, s := range []Statement{goldenReceipt(), goldenOutcome(), goldenTerms()} {
		f.Add(encodeJSON(signed(f, s)))
	}
	f.Add([]byte(`{"receipt":{"format":"eip712","payload":{},"signature":"0x"}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		s, err := ReadSigned(document)
		if err != nil {
			return
		}
		who, err := s.Signer()
		if err != nil {
			return
		}
		// What was read says the same to whoever reads what we would write of it.
		again, err := ReadSigned(encodeJSON(s))
		if err != nil {
			t.Fatalf("%s was read, and is not read again: %v", document, err)
		}
		if same, err := again.Signer(); err != nil || same != who {
			t.Errorf("%s is signed by %s, then by %s, %v", document, who, same, err)
		}
	})
}

// A provider writes schema and example; whatever they are, the challenge fits its header and clients can send it back.
func FuzzBazaar(f *testing.F) {
	for _, schema := range []string{`{"type":"object","required":["id"],"properties":{"id":{"pattern":"^a$"}}}`, `{"$ref":"#"}`, `true`, `[[[[]]]]`, `"\\\""`} {
		f.Add(schema, `{"id":"a","q":["1","2"]}`, true)
		f.Add(schema, `[]`, false)
	}
	o := offer(f, 12345, 1)
	f.Fuzz(func(t *testing.T, schema, example string, body bool) {
		// The catalog decodes both, and keeps what it encodes again.
		var s, e any
		if json.Unmarshal([]byte(schema), &s) != nil || json.Unmarshal([]byte(example), &e) != nil {
			return
		}
		l := Listing{Method: "GET", Path: "/s/w/{id}", TakesBody: body, InputSchema: encodeJSON(s), InputExample: encodeJSON(e)}
		c, err := NewChallenge(echo("d"), []Offer{o}, WithBazaar(NewBazaar(l)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeHeader(HeaderRequired, c.Header(Unpaid)); err != nil {
			t.Errorf("the challenge can not be read: %v", err)
		}
		if back := encodeJSON(map[string]any{"extensions": c.extensions}); len(c.extensions) > 0 {
			if _, err := decodeHeader(HeaderSignature, header(string(back))); err != nil {
				t.Errorf("what a client sends back can not be read: %v: %s", err, back)
			}
		}
	})
}
