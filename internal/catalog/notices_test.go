package catalog

import (
	"fmt"
	"strings"
	"testing"
)

const noticesDraft = `{"slug":"weather","name":"Weather","base_url":"https://api.weather.example","probe":{"path":"/healthz","statuses":["200"]},
	"endpoints":[{"method":"GET","path":"/","price_usd":"0.002"}],"notices":%s}`

var noticeRules = Rules{Assets: []AssetRule{{Decimals: 6}}, Own: []string{"market.example"}}

// B114: a webhook is checked as a base URL is, and a mail address is one address.
func TestParseDraft_Notices_WhatIsTakenAndWhatIsNot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		given string
		want  Notices
		at    string // of the problem; empty: it is taken
	}{
		"both":                     {`{"email":"ops@Weather.Example","webhook":"https://weather.example/hook"}`, Notices{"ops@weather.example", "https://weather.example/hook"}, ""},
		"none":                     {`{}`, Notices{}, ""},
		"a slash at the end stays": {`{"webhook":"https://weather.example/hook/"}`, Notices{"", "https://weather.example/hook/"}, ""},
		"a name with the address":  {`{"email":"Ops <ops@weather.example>"}`, Notices{}, "/notices/email"},
		"two addresses":            {`{"email":"a@weather.example,b@weather.example"}`, Notices{}, "/notices/email"},
		"a quoted mailbox":         {`{"email":"\"a b\"@weather.example"}`, Notices{}, "/notices/email"},
		"a line of a header":       {`{"email":"ops@weather.example\r\nBcc: all@weather.example"}`, Notices{}, "/notices/email"},
		"a host alone":             {`{"email":"ops@localhost"}`, Notices{}, "/notices/email"},
		"an address of a machine":  {`{"email":"ops@[10.0.0.1]"}`, Notices{}, "/notices/email"},
		"no mailbox":               {`{"email":"@weather.example"}`, Notices{}, "/notices/email"},
		"a webhook in the clear":   {`{"webhook":"http://weather.example/hook"}`, Notices{}, "/notices/webhook"},
		"a user in the webhook":    {`{"webhook":"https://user:pw@weather.example/hook"}`, Notices{}, "/notices/webhook"},
		"an inner webhook":         {`{"webhook":"https://169.254.169.254/latest"}`, Notices{}, "/notices/webhook"},
		"another port":             {`{"webhook":"https://weather.example:5432/"}`, Notices{}, "/notices/webhook"},
		"a webhook that is this":   {`{"webhook":"https://market.example/api/v1/services"}`, Notices{}, "/notices/webhook"},
		"another scheme":           {`{"webhook":"file:///etc/passwd"}`, Notices{}, "/notices/webhook"},
		"a query":                  {`{"webhook":"https://weather.example/?a=b"}`, Notices{}, "/notices/webhook"},
		"another member":           {`{"sms":"+1"}`, Notices{}, "/notices/sms"},
		"null in a new listing":    {`{"email":null}`, Notices{}, "/notices/email"},
		"no object":                {`"ops@weather.example"`, Notices{}, "/notices"},
	} {
		d, err := ParseDraft(fmt.Appendf(nil, noticesDraft, tt.given), noticeRules)
		switch {
		case tt.at == "" && (err != nil || d.Notices != tt.want):
			t.Errorf("%s: %+v, %v; want %+v", name, d.Notices, err, tt.want)
		case tt.at != "" && (err == nil || !strings.Contains(err.Error(), tt.at)):
			t.Errorf("%s: %v, want a problem at %s", name, err, tt.at)
		}
	}
}

func TestParsePatch_Notices_NullTakesOneAwayAndLeavesTheOther(t *testing.T) {
	t.Parallel()
	s := Service{Slug: "weather", Name: "Weather", BaseURL: "https://api.weather.example", Probe: Probe{Method: "GET", Path: "/healthz"},
		Notices: Notices{"ops@weather.example", "https://weather.example/hook"}}
	s.Probe.Statuses, _ = ParseStatuses("200")
	for patch, want := range map[string]Notices{
		`{"notices":{"email":null}}`:                      {"", "https://weather.example/hook"},
		`{"notices":{"email":"on-call@weather.example"}}`: {"on-call@weather.example", "https://weather.example/hook"},
		`{"notices":null}`:                                {},
		`{"name":"Weather again"}`:                        s.Notices,
	} {
		d, err := s.ParsePatch([]byte(patch), noticeRules)
		if err != nil || d.Notices != want {
			t.Errorf("%s: %+v, %v; want %+v", patch, d.Notices, err, want)
		}
	}
}
