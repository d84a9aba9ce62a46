package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

// B145 is about what pages do with such texts; the worst of them never get that far.
func TestParseDraft_NamesAreWhatTheyLookLike(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		name, want string // want is empty: refused
	}{
		"plain":                              {"Weather, by city: 24/7 & more!", "Weather, by city: 24/7 & more!"},
		"composed and decomposed are one":    {"Cafe\u0301", "Caf\u00e9"},
		"other scripts":                      {"天気 погода मौसम", "天気 погода मौसम"},
		"an emoji put together":              {"\U0001F469\u200d\U0001F4BB code", "\U0001F469\u200d\U0001F4BB code"},
		"an emoji with its variation":        {"Sun \u2600\ufe0f", "Sun \u2600\ufe0f"},
		"a joiner between letters that take": {"می\u200cخواهم", "می\u200cخواهم"},

		"a joiner between Latin letters":     {"Wea\u200dther", ""},
		"a joiner at the end":                {"天\u200d", ""},
		"a zero-width space":                 {"Wea\u200bther", ""},
		"a word joiner":                      {"Wea\u2060ther", ""},
		"a byte order mark":                  {"\ufeffWeather", ""},
		"a soft hyphen":                      {"Wea\u00adther", ""},
		"a Hangul filler":                    {"\u3164", ""},
		"a combining grapheme joiner":        {"We\u034fther", ""},
		"a tag character":                    {"Weather\U000E0041", ""},
		"a private character":                {"\ue000Weather", ""},
		"a space that does not break":        {"Wea\u00a0ther", ""},
		"an ideographic space":               {"天\u3000気", ""},
		"a space before":                     {" Weather", ""},
		"a space behind":                     {"Weather ", ""},
		"nothing but spaces":                 {"   ", ""},
		"an override of the direction":       {"evil\u202etxt", ""},
		"an isolate":                         {"a\u2066b\u2069", ""},
		"a mark of the direction":            {"a\u200fb", ""},
		"a tab":                              {"a\tb", ""},
		"a C1 control":                       {"a\u0085b", ""},
		"a line separator":                   {"a\u2028b", ""},
		"a replacement for what was no text": {"a\ufffdb", ""},
		"81 characters once composed":        {strings.Repeat("e\u0301", 81), ""},
		"80 characters once composed":        {strings.Repeat("e\u0301", 80), strings.Repeat("\u00e9", 80)},
	} {
		for _, member := range []string{"name", "description"} {
			body := edited(t, func(listing, _ map[string]any) { listing[member] = tt.name })
			if !json.Valid(body) {
				t.Fatal(what)
			}
			d, err := ParseDraft(body, production())
			got := map[string]string{"name": d.Name, "description": d.Description}[member]
			if member == "description" && strings.HasPrefix(what, "81") {
				continue // it may be longer
			}
			if (err == nil) != (tt.want != "") || err == nil && got != tt.want {
				t.Errorf("%s in the %s: %q, %v; want %q", what, member, got, err, tt.want)
			}
		}
	}
}
