package catalog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"market/internal/catalog"
	"market/internal/refusal"
)

func TestParseAppeal(t *testing.T) {
	t.Parallel()
	const strike = "01a229fc-ba8e-7206-9714-2247e6d48e58"
	for name, tt := range map[string]struct {
		body  string
		wrong []string
	}{
		"about the service":       {`{"text":"We moved."}`, nil},
		"against a strike":        {`{"strike":"` + strike + `","text":"It was your proxy."}`, nil},
		"as long as it may be":    {`{"text":"` + strings.Repeat("ü", catalog.AppealLenMax) + `"}`, nil},
		"longer":                  {`{"text":"` + strings.Repeat("ü", catalog.AppealLenMax+1) + `"}`, []string{"/text"}},
		"nothing said":            {`{"strike":"` + strike + `"}`, []string{"/text"}},
		"an empty text":           {`{"text":""}`, []string{"/text"}},
		"a text that turns round": {"{\"text\":\"a\u202eb\"}", []string{"/text"}},
		"against no id":           {`{"strike":"the third","text":"no"}`, []string{"/strike"}},
		"a strike that is null":   {`{"strike":null,"text":"no"}`, []string{"/strike"}},
		"a member that is none":   {`{"text":"no","service":"x"}`, []string{"/service"}},
	} {
		d, err := catalog.ParseAppeal([]byte(tt.body))
		var wrong []string
		if no, ok := errors.AsType[*refusal.Error](err); ok {
			for _, f := range no.Fields {
				wrong = append(wrong, f.Name)
			}
		}
		if !slices.Equal(wrong, tt.wrong) {
			t.Errorf("%s: wrong are %q, want %q (%v)", name, wrong, tt.wrong, err)
		}
		if name == "against a strike" && (d.Strike.String() != strike || d.Text != "It was your proxy.") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
