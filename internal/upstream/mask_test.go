package upstream

import (
	"strings"
	"testing"
)

// A text may end anywhere, also in the middle of an escape that stands in another one.
func TestMask_Cut_LeavesNoBeginningOfASecretBeforeAnEscapeThatBrokeOff(t *testing.T) {
	t.Parallel()
	m := mask{texts: []string{"abcdefgh&ijkl"}}
	for name, spelled := range map[string]string{
		"JSON":                 `abcdefgh\u0026ijkl`,
		"JSON in JSON":         `abcdefgh\\u0026ijkl`,
		"JSON in JSON in JSON": `abcdefgh\\\\u0026ijkl`,
		"URL in URL":           `abcdefgh%2526ijkl`,
		"JSON in a URL":        `abcdefgh%5Cu0026ijkl`,
		"JSON in JSON in URL":  `abcdefgh%5C%5Cu0026ijkl`,
		"JSON in HTML":         `abcdefgh&#92;u0026ijkl`,
		"HTML in JSON":         `abcdefgh\u0026amp;ijkl`,
		"HTML in JSON in JSON": `abcdefgh\\u0026amp;ijkl`,
		"HTML in HTML":         `abcdefgh&amp;amp;ijkl`,
		"HTML in a URL":        `abcdefgh%26amp%3Bijkl`,
		"URL in HTML":          `abcdefgh&percnt;26ijkl`,
	} {
		for n := range strings.Index(spelled, "i") + 1 {
			if got := string(m.cut([]byte("key " + spelled[:n]))); got != "key " {
				t.Errorf("%s, cut after %d letters: %q is left of %q", name, n, got, "key "+spelled[:n])
			}
		}
	}
}

func TestMask_Cut_LeavesWhatBeginsNoSecret(t *testing.T) {
	t.Parallel()
	m := mask{texts: []string{"abcdefgh&ijkl"}}
	for _, text := range []string{"", "key", `a text of \u00e9`, "100 %", "%D0%BF%D1%80", "a & b, R&D", `\\\\`} {
		if got := string(m.cut([]byte(text))); got != text {
			t.Errorf("%q is left of %q", got, text)
		}
	}
}

// A secret with special characters is read in each spelling, and in each spelling of a spelling.
func TestMask_Bytes_HidesASecretThatIsSpelledTwice(t *testing.T) {
	t.Parallel()
	m := mask{texts: []string{"abcdefgh&ijkl"}}
	for name, spelled := range map[string]string{
		"URL in URL":    `abcdefgh%2526ijkl`,
		"JSON in a URL": `abcdefgh%5Cu0026ijkl`,
		"HTML in a URL": `abcdefgh%26amp%3Bijkl`,
		"JSON in HTML":  `abcdefgh&#92;u0026ijkl`,
		"HTML in HTML":  `abcdefgh&amp;amp;ijkl`,
		"URL in HTML":   `abcdefgh&percnt;26ijkl`,
		"HTML in JSON":  `abcdefgh\u0026amp;ijkl`,
		"JSON in JSON":  `abcdefgh\\u0026ijkl`,
	} {
		if got := string(m.bytes([]byte("key " + spelled + " is bad"))); got != "key [hidden] is bad" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
