package payment

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestReadSigned_FindsTheStatementWhereItTravels(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Statement{"receipt": goldenReceipt(), "outcome": goldenOutcome(), "terms": goldenTerms()} {
		bare := encodeJSON(signed(t, s))
		response := signed(t, s)
		header, err := base64.StdEncoding.DecodeString(EncodeResponse(SettleResponse{Success: true, Network: "eip155:84532"}.WithReceipt(&response)))
		if err != nil {
			t.Fatal(err)
		}
		for where, document := range map[string]string{
			"by itself":               string(bare),
			"in a call's record":      `{"id":"x","state":"failed","receipt":` + string(bare) + `}`,
			"in a settlement answer":  string(header),
			"with white space around": " \n" + string(bare) + "\n",
		} {
			got, err := ReadSigned([]byte(document))
			if err != nil {
				t.Errorf("%s, %s: %v", name, where, err)
				continue
			}
			if who, err := got.Signer(); err != nil || who != key(t).Address() || got.Payload != s {
				t.Errorf("%s, %s: signed by %s (%v), says %+v", name, where, who, err, got.Payload)
			}
		}
	}
}

// What is shown as signed has to be all that was signed, and nothing that two readers read differently.
func TestReadSigned_Refuses(t *testing.T) {
	t.Parallel()
	receipt := string(encodeJSON(signed(t, goldenReceipt())))
	change := func(old, with string) string {
		if !strings.Contains(receipt, old) {
			t.Fatalf("the receipt has no %s: %s", old, receipt)
		}
		return strings.Replace(receipt, old, with, 1)
	}
	for name, tt := range map[string]struct{ document, want string }{
		"nothing":                      {``, "read signed statement"},
		"no JSON":                      {`{`, "read signed statement"},
		"a list":                       {`[` + receipt + `]`, "read signed statement"},
		"two documents":                {receipt + receipt, "read signed statement"},
		"a document without one":       {`{"id":"x"}`, "no signed receipt"},
		"one that is far too long":     {`{"a":"` + strings.Repeat("x", signedBytesMax) + `"}`, "longer"},
		"the format jws":               {change(`"eip712"`, `"jws"`), "jws"},
		"another format":               {change(`"eip712"`, `"eip191"`), "not eip712"},
		"no format":                    {change(`"format":"eip712",`, ``), "not eip712"},
		"a signature that is a number": {change(`"`+receiptSignature+`"`, `7`), "not a string"},
		"a signature of other digits":  {change(receiptSignature, `0xzz`), "hexadecimal"},
		"a compact signature":          {change(receiptSignature, receiptSignature[:130]), "64 bytes"},
		"no payload":                   {change(`"payload"`, `"contents"`), "no payload"},
		"a member more":                {change(`"version":1`, `"version":1,"amount":"1000000"`), "unknown"},
		"a member less":                {change(`"issuedAt":1790000000,`, ``), "no issuedAt"},
		"a member twice":               {change(`"version":1`, `"version":1,"version":1`), "twice"},
		"a member in another case":     {change(`"payer"`, `"Payer"`), "another case"},
		"a member twice, in two cases": {change(`"payer"`, `"PAYER":"`+goldenTreasury+`","payer"`), "another case"},
		"a time that is a string":      {change(`1790000000`, `"1790000000"`), "another type"},
		"a time with a fraction":       {change(`1790000000`, `1790000000.5`), "another type"},
		"a time below zero":            {change(`1790000000`, `-1`), "another type"},
		"a payer that is null":         {change(`"`+goldenPayer+`"`, `null`), "no payer"},
		"another version":              {change(`"version":1`, `"version":2`), "version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := ReadSigned([]byte(tt.document))
			if err == nil {
				_, err = s.Signer()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
		})
	}
	// x402 lets a server withhold the transaction, by leaving it out or by an empty string: they are signed alike.
	s, err := ReadSigned([]byte(change(`,"transaction":""`, ``)))
	if err != nil {
		t.Fatal(err)
	}
	if who, err := s.Signer(); err != nil || who != key(t).Address() {
		t.Errorf("without a transaction it is signed by %s, %v", who, err)
	}
}

func TestSigned_AnyChangeIsAnotherSigner(t *testing.T) {
	t.Parallel()
	document := string(encodeJSON(signed(t, goldenOutcome())))
	for _, word := range []string{"84532", "shop.test", goldenPayer, "1790000000", "0x01", "01a229fc", "failed", "upstream_5xx", "12345", "owed", goldenNonce} {
		flipped := []byte(word)
		if last := &flipped[len(flipped)-1]; *last == '0' {
			*last = '1'
		} else {
			*last = '0'
		}
		s, err := ReadSigned([]byte(strings.Replace(document, word, string(flipped), 1)))
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		if who, err := s.Signer(); err == nil && who == key(t).Address() {
			t.Errorf("%s was changed, and the signer is the same", word)
		}
	}
}
