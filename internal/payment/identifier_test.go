package payment

import (
	"encoding/json"
	"strings"
	"testing"

	"market/internal/call"
	"market/internal/chain"
)

const goldenIdentifier = "pay_0123456789abcdef"

// extended is the golden payment with another extensions member; empty leaves it out.
func extended(t *testing.T, extensions string) string {
	t.Helper()
	const whole = `,"extensions":{"payment-identifier":{"info":{"required":false,"id":"pay_0123456789abcdef"},"schema":{"type":"object"}}}`
	if extensions == "" {
		return golden(t, whole, "")
	}
	return golden(t, whole, `,"extensions":`+extensions)
}

func info(members string) string { return `{"payment-identifier":{"info":{` + members + `}}}` }

func TestDecode_TakesTheIdentifier(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		extensions string
		want       string
	}{
		"of the protocol's own example":           {info(`"required":false,"id":"` + goldenIdentifier + `"`), goldenIdentifier},
		"of 16 characters":                        {info(`"required":false,"id":"` + strings.Repeat("a", 16) + `"`), strings.Repeat("a", 16)},
		"of 128 characters":                       {info(`"required":false,"id":"` + strings.Repeat("a", 128) + `"`), strings.Repeat("a", 128)},
		"of every kind of character":              {info(`"required":false,"id":"AZaz09_-AZaz09_-"`), "AZaz09_-AZaz09_-"},
		"none in a payment without extensions":    {"", ""},
		"none where extensions are null":          {"null", ""},
		"none where extensions are empty":         {"{}", ""},
		"none in another extension":               {`{"other":{"info":{"id":"` + goldenIdentifier + `"}}}`, ""},
		"none where ours is null":                 {`{"payment-identifier":null}`, ""},
		"none where our declaration is echoed":    {identifierDeclaration, ""},
		"none where the id is null":               {info(`"required":false,"id":null`), ""},
		"none outside of info":                    {`{"payment-identifier":{"id":"` + goldenIdentifier + `","info":{"required":false}}}`, ""},
		"none under another spelling of the name": {info(`"required":false,"ID":"` + goldenIdentifier + `"`), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := decoded(t, extended(t, test.extensions))
			if p.Identifier != test.want {
				t.Errorf("identifier = %q, want %q", p.Identifier, test.want)
			}
			if _, err := Match(p, []Offer{offer(t, 12345, 1)}, goldenResource, Extensions()); err != nil {
				t.Errorf("Match: %v", err)
			}
		})
	}
}

func TestDecode_RefusesAnIdentifierOfAnotherForm(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ extensions, detail string }{
		"of 15 characters":           {info(`"required":false,"id":"` + strings.Repeat("a", 15) + `"`), "16 to 128"},
		"of 129 characters":          {info(`"required":false,"id":"` + strings.Repeat("a", 129) + `"`), "16 to 128"},
		"empty":                      {info(`"required":false,"id":""`), "16 to 128"},
		"with a character too many":  {info(`"required":false,"id":"leak-me-leak-me!"`), "16 to 128"},
		"with a line break":          {info(`"required":false,"id":"aaaaaaaaaaaaaaaa\n"`), "16 to 128"},
		"with letters of other sets": {info(`"required":false,"id":"ааааааааааааааааа"`), "16 to 128"},
		"a number":                   {info(`"required":false,"id":1234567890123456`), "info.id must be a string"},
		"an info that is a list":     {`{"payment-identifier":{"info":[]}}`, "payment-identifier.info must be an object"},
		"a declaration that is text": {`{"payment-identifier":"` + goldenIdentifier + `"}`, "payment-identifier must be an object"},
		"extensions that are a list": {`[]`, "extensions must be an object"},
		"an id that occurs twice":    {info(`"required":false,"id":"` + goldenIdentifier + `","id":"` + goldenIdentifier + `x"`), "occurs twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode(extended(t, test.extensions))
			wantRefusal(t, err, call.PaymentMalformed, CodePayload, test.detail)
			if strings.Contains(err.Error(), "leak-me") {
				t.Errorf("the refusal repeats what was sent: %v", err)
			}
		})
	}
}

func TestMatch_WantsOurDeclarationWholeWhereItIsEchoed(t *testing.T) {
	t.Parallel()
	for name, extensions := range map[string]string{
		"info is missing":     `{"payment-identifier":{}}`,
		"info is null":        `{"payment-identifier":{"info":null}}`,
		"required is missing": info(`"id":"` + goldenIdentifier + `"`),
		"required is null":    info(`"required":null`),
		"required is text":    info(`"required":"false"`),
		"required is true":    info(`"required":true,"id":"` + goldenIdentifier + `"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Match(decoded(t, extended(t, extensions)), []Offer{offer(t, 12345, 1)}, goldenResource, Extensions())
			wantRefusal(t, err, call.PaymentMismatch, CodeExtensionEcho, "extensions.payment-identifier.info must hold all")
		})
	}
}

// The description is cut before the extension goes, and without the extension there is a little more room for it.
func TestChallenge_LeavesTheExtensionOutWhereItDoesNotFit(t *testing.T) {
	t.Parallel()
	three := []Offer{offer(t, 1, 1), offer(t, 2, 1), offer(t, 3, 1)}
	urlOf := func(n int) Resource {
		return Resource{URL: "https://shop.test/" + strings.Repeat("a", n), Description: strings.Repeat("d", 4000)}
	}
	size := len(challenge(t, Resource{URL: urlOf(0).URL}, three...).json(longestCode))
	room := challengeBytesMax - size
	for n, declared := range map[int]bool{room - 1: true, room: true, room + 1: false} {
		c := challenge(t, urlOf(n), three...)
		sent := decodedHeader(t, c.Header(Unpaid))
		if got := strings.Contains(sent, identifierKey); got != declared {
			t.Errorf("%d bytes more than fit: the extension is declared = %v, want %v", n-room, got, declared)
		}
		if len(c.Header(longestCode)) > headerBytesWrittenMax || !json.Valid([]byte(sent)) {
			t.Errorf("%d bytes more than fit: header = %s", n-room, sent)
		}
		if described := strings.Contains(sent, "dddd"); described == declared {
			t.Errorf("%d bytes more than fit: described = %v: the description takes what room there is, and no other", n-room, described)
		}
	}
}

func TestEncodeIdentified_IsFoundInThePayment(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{
		"ours": string(challenge(t, echo(""), offer(t, 12345, 1)).json(Unpaid)), "another server's": foreignChallenge,
	} {
		required, err := DecodeChallenge(header(document))
		if err != nil || !required.TakesIdentifier() {
			t.Fatalf("%s: %+v, %v; want one that takes an identifier", name, required, err)
		}
		id := NewIdentifier()
		h, err := EncodeIdentified(required, required.Accepts[0], chain.Signed{Signature: chain.Signature{31: 1, 63: 1, 64: 27}}, id)
		if err != nil {
			t.Fatal(err)
		}
		if p := decoded(t, h); p.Identifier != id || p.checkEcho(Extensions()) != nil {
			t.Errorf("%s: identifier = %q, echo %v, want %q", name, p.Identifier, p.checkEcho(Extensions()), id)
		}
		if sent := decodedHeader(t, h); !strings.Contains(sent, `"schema":{"type":"object"`) || strings.Count(sent, `"required":false`) != 1 {
			t.Errorf("%s: the declaration is not echoed whole: %s", name, sent)
		}
	}
}

func TestEncodeIdentified_Refuses(t *testing.T) {
	t.Parallel()
	takes, err := DecodeChallenge(header(foreignChallenge))
	if err != nil {
		t.Fatal(err)
	}
	for name, declaration := range map[string]string{"no extension": "", "a null one": "null", "one without info": `{}`, "info that is text": `{"info":"x"}`} {
		document := strings.Replace(foreignChallenge, `{"info":{"required":false},"schema":{"type":"object"}}`, declaration, 1)
		if declaration == "" {
			document = strings.Replace(foreignChallenge, `"payment-identifier"`, `"other"`, 1)
		}
		r, err := DecodeChallenge(header(document))
		if err != nil || r.TakesIdentifier() {
			t.Errorf("%s: %+v, %v; want one that takes no identifier", name, r, err)
		}
		if _, err := EncodeIdentified(r, takes.Accepts[0], chain.Signed{}, goldenIdentifier); err == nil {
			t.Errorf("%s: an identifier was encoded for a server that takes none", name)
		}
	}
	for name, id := range map[string]string{"empty": "", "short": strings.Repeat("a", 15), "long": strings.Repeat("a", 129), "quoted": `aaaaaaaa"aaaaaaaa`} {
		if _, err := EncodeIdentified(takes, takes.Accepts[0], chain.Signed{}, id); err == nil {
			t.Errorf("%s: the identifier was encoded", name)
		}
	}
}

func TestNewIdentifier_IsOneThatWeTakeAndNeverTheSame(t *testing.T) {
	t.Parallel()
	first, second := NewIdentifier(), NewIdentifier()
	if !identifierForm.MatchString(first) || first == second {
		t.Errorf("identifiers = %q, %q", first, second)
	}
}
