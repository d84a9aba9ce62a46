package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"market/internal/catalog"
	"market/internal/refusal"
)

func TestParseHeaders_NamesTheHeaderThatIsWrongAndNeverItsValue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("v", 2048)
	eleven := map[string]any{}
	for i := range 11 {
		eleven[fmt.Sprintf("X-%d", i)] = "secretive"
	}
	tests := map[string]struct {
		headers map[string]any
		merge   bool
		want    string // the pointer; "-" for nothing wrong
	}{
		"an API key":                      {map[string]any{"X-Api-Key": "secretive"}, false, "-"},
		"a bearer token":                  {map[string]any{"authorization": "Bearer secretive"}, false, "-"},
		"a cookie":                        {map[string]any{"Cookie": "session=secretive; x=1"}, false, "-"},
		"none":                            {map[string]any{}, false, "-"},
		"ten":                             {without(eleven, "X-10"), false, "-"},
		"eleven":                          {eleven, false, ""},
		"the longest value":               {map[string]any{"X-Api-Key": long}, false, "-"},
		"a longer value":                  {map[string]any{"X-Api-Key": long + "v"}, false, "/X-Api-Key"},
		"together as long as may be":      {map[string]any{"A": long, "B": long, "C": long, "D": long[:2044]}, false, "-"},
		"together longer":                 {map[string]any{"A": long, "B": long, "C": long, "D": long[:2045]}, false, ""},
		"an empty value":                  {map[string]any{"X-Api-Key": ""}, false, "/X-Api-Key"},
		"a value with spaces around":      {map[string]any{"X-Api-Key": " secretive"}, false, "/X-Api-Key"},
		"a value with a line break":       {map[string]any{"X-Api-Key": "secretive\r\nX: y"}, false, "/X-Api-Key"},
		"a value with U+0000":             {map[string]any{"X-Api-Key": "secretive\x00"}, false, "/X-Api-Key"},
		"a value outside ASCII":           {map[string]any{"X-Api-Key": "secretivé"}, false, "/X-Api-Key"},
		"a value with a tab":              {map[string]any{"X-Api-Key": "a\tsecretive"}, false, "/X-Api-Key"},
		"a number":                        {map[string]any{"X-Api-Key": 12345678}, false, "/X-Api-Key"},
		"null where all are given":        {map[string]any{"X-Api-Key": nil}, false, "/X-Api-Key"},
		"null in a change":                {map[string]any{"X-Api-Key": nil}, true, "-"},
		"an empty name":                   {map[string]any{"": "secretive"}, false, "/"},
		"a name with a space":             {map[string]any{"X Api": "secretive"}, false, "/X Api"},
		"a name with a colon":             {map[string]any{"X:Api": "secretive"}, false, "/X:Api"},
		"a name with a slash":             {map[string]any{"X/Api": "secretive"}, false, "/X~1Api"},
		"a name with a line break":        {map[string]any{"X\r\nY": "secretive"}, false, "/X\r\nY"},
		"a name outside ASCII":            {map[string]any{"Ünï": "secretive"}, false, "/Ünï"},
		"the longest name":                {map[string]any{strings.Repeat("n", 64): "secretive"}, false, "-"},
		"one header in two spellings":     {map[string]any{"X-Api-Key": "secretive", "x-api-key": "other"}, false, "/x-api-key"},
		"one set and removed":             {map[string]any{"X-Api-Key": "secretive", "x-api-key": nil}, true, "/x-api-key"},
		"a body that is no object":        {nil, false, "body"},
		"a header that we set":            {map[string]any{"Idempotency-Key": "secretive"}, false, "/Idempotency-Key"},
		"one of ours in another spelling": {map[string]any{"market_secret": "secretive"}, false, "/market_secret"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := json.Marshal(tt.headers)
			if err != nil {
				t.Fatal(err)
			}
			change, err := catalog.ParseHeaders(body, tt.merge)
			no, refused := errors.AsType[*refusal.Error](err)
			switch {
			case tt.want == "-":
				if err != nil || change.Replace == tt.merge || len(change.Set)+len(change.Remove) != len(tt.headers) {
					t.Errorf("%v, %+v, want every header taken", err, change)
				}
			case !refused:
				t.Errorf("taken as %+v (%v)", change, err)
			case tt.want == "body":
			case len(no.Fields) != 1 || no.Fields[0].Name != tt.want:
				t.Errorf("fields = %+v, want %q", no.Fields, tt.want)
			}
			if shown := fmt.Sprintf("%+v %v", no, change); strings.Contains(shown, "secretive") || strings.Contains(shown, "vvvv") {
				t.Errorf("a value shows: %s", shown)
			}
		})
	}
}

func without(m map[string]any, name string) map[string]any {
	m = maps.Clone(m)
	delete(m, name)
	return m
}

// B96, B102: a listing cannot say, in any spelling, what we say ourselves, or how the connection works.
func TestReservedHeader_KnowsEverySpelling(t *testing.T) {
	t.Parallel()
	reserved := []string{
		"Host", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "TE", "Trailer", "Transfer-Encoding",
		"Upgrade", "Expect", "Range", "If-None-Match", "If-Range", "Content-Length", "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding",
		"Accept-Language", "User-Agent", "Idempotency-Key", "X-Idempotency-Key", "Market-Call", "Market-Secret", "Market-Anything", "X-Market-Payer", "Payment-Signature",
		"Payment-Required", "PAYMENT-RESPONSE", "X-PAYMENT", "X-Payment-Response", "Sign-In-With-X", "Forwarded", "X-Forwarded-For",
		"X-Forwarded-Proto", "X-Real-IP", "Via", "Max-Forwards", "HTTP2-Settings", "Date",
	}
	for _, name := range reserved {
		for _, spelled := range []string{
			name, strings.ToLower(name), strings.ToUpper(name), strings.ReplaceAll(name, "-", "_"), strings.ReplaceAll(name, "-", "."),
			strings.ToUpper(strings.ReplaceAll(name, "-", "_")),
		} {
			if !catalog.ReservedHeader(spelled) {
				t.Errorf("%s may be set", spelled)
			}
		}
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Amz-Date", "Apikey", "Api_key", "X-Hosted", "Marketplace", "X-Paymaster", "Iframe"} {
		if catalog.ReservedHeader(name) {
			t.Errorf("%s must not be set", name)
		}
	}
}
