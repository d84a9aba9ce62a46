package wire

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func TestDecodeObject_ReadsEveryDialectOfBase64(t *testing.T) {
	t.Parallel()
	const document = `{"a":"?>?>~~","b":true,"c":1.50,"d":null,"e":[{"f":"g"}]}` // needs + and / of the alphabet
	for name, dialect := range map[string]*base64.Encoding{
		"standard": base64.StdEncoding, "standard, unpadded": base64.RawStdEncoding,
		"URL": base64.URLEncoding, "URL, unpadded": base64.RawURLEncoding,
	} {
		v, err := DecodeObject(dialect.EncodeToString([]byte(document)), 1000)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m := v.Members
		if m["a"].Text != "?>?>~~" || m["b"].Text != "true" || m["c"].Text != "1.50" || m["d"].Kind != Null || len(m["e"].Items) != 1 {
			t.Errorf("%s: %+v", name, v)
		}
		if string(m["e"].Items[0].Raw) != `{"f":"g"}` || string(v.Raw) != document {
			t.Errorf("%s: the bytes of an object are not kept", name)
		}
		if !v.Given("a") || v.Given("d") || v.Given("A") {
			t.Errorf("%s: given are members that are there, under their very name, and not null", name)
		}
	}
}

func TestDecodeObject_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	of := func(s string) string { return EncodeBase64([]byte(s)) }
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
	}
	const bytesMax = 800
	tests := map[string]struct {
		header string
		want   error
	}{
		"nothing":                        {"", ErrEmpty},
		"on the limit":                   {strings.Repeat("A", bytesMax), ErrNotJSON},
		"over the limit":                 {strings.Repeat("A", bytesMax+1), ErrTooLong},
		"other characters":               {"{}", ErrNotBase64},
		"a line break":                   {of("{}")[:2] + "\n" + of("{}")[2:], ErrNotBase64},
		"both alphabets":                 {"+-AA", ErrNotBase64},
		"no JSON":                        {of("a"), ErrNotJSON},
		"two documents":                  {of("{}{}"), ErrNotJSON},
		"bytes of no encoding":           {of("{\"a\":\"\xff\"}"), ErrNotJSON},
		"a list":                         {of("[]"), ErrNotObject},
		"null":                           {of("null"), ErrNotObject},
		"a member twice":                 {of(`{"a":1,"a":1}`), ErrDuplicateKey},
		"a member twice, deeper":         {of(`{"a":[{"b":1,"b":1}]}`), ErrDuplicateKey},
		"a member twice, once escaped":   {of(`{"a":1,"\u0061":1}`), ErrDuplicateKey},
		"one member in two cases":        {of(`{"a":1,"A":1}`), nil},
		"a byte order mark":              {of("\ufeff{}"), ErrNotJSON},
		"a zero byte":                    {of("{\"a\":\"\x00\"}"), ErrNotJSON},
		"a zero byte behind":             {of("{}\x00"), ErrNotJSON},
		"an escaped zero":                {of(`{"a":"\u0000"}`), ErrNotJSON},
		"an escaped zero in a name":      {of(`{"\u0000":1}`), ErrNotJSON},
		"an escaped backslash, u0000":    {of(`{"a":"\\u0000"}`), nil},
		"a pair of surrogates":           {of(`{"a":"\ud83d\ude00"}`), nil},
		"a pair in capitals":             {of(`{"a":"\uD83D\uDE00"}`), nil},
		"a first half alone":             {of(`{"a":"\ud83d"}`), ErrNotJSON},
		"a first half before a letter":   {of(`{"a":"\ud83dx"}`), ErrNotJSON},
		"a first half before another":    {of(`{"a":"\ud83d\ud83d"}`), ErrNotJSON},
		"a first half before an escape":  {of(`{"a":"\ud83d\n"}`), ErrNotJSON},
		"a second half alone":            {of(`{"a":"\ude00"}`), ErrNotJSON},
		"two halves the wrong way":       {of(`{"a":"\ude00\ud83d"}`), ErrNotJSON},
		"a half in a name":               {of(`{"\udfff":1}`), ErrNotJSON},
		"half of UTF-8":                  {of("{\"a\":\"\xd0\"}"), ErrNotJSON},
		"a surrogate in UTF-8":           {of("{\"a\":\"\xed\xa0\x80\"}"), ErrNotJSON},
		"other scripts":                  {of(`{"описание":"Погода 🌦"}`), nil},
		"a number that is huge":          {of(`{"a":1e999999999}`), nil},
		"a number with a leading zero":   {of(`{"a":01}`), ErrNotJSON},
		"no number":                      {of(`{"a":NaN}`), ErrNotJSON},
		"a comma behind the last":        {of(`{"a":1,}`), ErrNotJSON},
		"a comment":                      {of(`{/**/}`), ErrNotJSON},
		"space around":                   {of(" {}\r\n"), nil},
		"another space around":           {of("\u00a0{}"), ErrNotJSON},
		"a space in base64":              {of("{}")[:2] + " " + of("{}")[2:], ErrNotBase64},
		"padding that is too long":       {of("{}") + "=", ErrNotBase64},
		"padding in the middle":          {of("{}") + of("{}"), ErrNotBase64},
		"a letter too many":              {of("{} ") + "A", ErrNotBase64},
		"as deep as may be":              {of(nested(DepthMax)), nil},
		"deeper than may be":             {of(nested(DepthMax + 1)), ErrTooDeep},
		"deeper than may be, with lists": {of(`{"a":` + strings.Repeat("[", DepthMax) + strings.Repeat("]", DepthMax) + `}`), ErrTooDeep},
	}
	for name, test := range tests {
		if _, err := DecodeObject(test.header, bytesMax); !errors.Is(err, test.want) {
			t.Errorf("%s: error = %v, want %v", name, err, test.want)
		}
	}
}

func TestParseObject_ABodyIsReadAsStrictlyAsAHeader(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{
		`{"a":1}`:          nil,
		``:                 ErrEmpty,
		`{"a":"12345678"}`: ErrTooLong,
		`{"a":1`:           ErrNotJSON,
		`[]`:               ErrNotObject,
		`{"a":1,"a":2}`:    ErrDuplicateKey,
		`{} {}`:            ErrNotJSON,
	} {
		if _, err := ParseObject([]byte(body), 15); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
}
