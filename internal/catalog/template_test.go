package catalog

import (
	"maps"
	"net/url"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseTemplate_RefusesWhatHasTwoReadings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path string
		good bool
	}{
		"a plain path":                         {"/v1/current", true},
		"a parameter":                          {"/v1/city/{id}", true},
		"two parameters":                       {"/{a}/x/{b}", true},
		"the root":                             {"/", true},
		"empty":                                {"", false},
		"relative":                             {"v1", false},
		"a double slash":                       {"/v1//x", false},
		"a leading double slash":               {"//v1", false},
		"a trailing slash":                     {"/v1/", false},
		"a parent segment":                     {"/v1/../x", false},
		"a dot segment":                        {"/v1/./x", false},
		"an escaped slash":                     {"/v1/a%2Fb", false},
		"any escape":                           {"/v1/%61", false},
		"a query":                              {"/v1?x=1", false},
		"a fragment":                           {"/v1#x", false},
		"a semicolon":                          {"/v1;x", false},
		"a backslash":                          {`/v1\x`, false},
		"a space":                              {"/v1/a b", false},
		"a parameter that is half a segment":   {"/v1/a{id}", false},
		"a parameter without a name":           {"/v1/{}", false},
		"a parameter that appears twice":       {"/{id}/x/{id}", false},
		"a brace without its partner":          {"/v1/{id", false},
		"longer than the limit":                {"/" + strings.Repeat("a", templateLenMax), false},
		"more segments than the limit":         {strings.Repeat("/a", segmentsMax+1), false},
		"as many segments as the limit allows": {strings.Repeat("/a", segmentsMax), true},
	}
	for name, tt := range tests {
		if _, err := ParseTemplate(tt.path); (err == nil) != tt.good {
			t.Errorf("%s: ParseTemplate(%q) error = %v, want good = %v", name, tt.path, err, tt.good)
		}
	}
}

func TestTemplate_Match_ComparesTheEscapedPathSegmentBySegment(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		template, path string
		want           map[string]string // nil: no match
		built          string
	}{
		"a literal":                          {"/v1/x", "/v1/x", map[string]string{}, "/v1/x"},
		"another case":                       {"/v1/x", "/V1/x", nil, ""},
		"an escaped letter of a literal":     {"/v1/x", "/%761/x", nil, ""},
		"a double slash":                     {"/v1/x", "/v1//x", nil, ""},
		"a leading double slash":             {"/v1/x", "//v1/x", nil, ""},
		"a trailing slash":                   {"/v1/x", "/v1/x/", nil, ""},
		"a parent segment":                   {"/v1/x", "/v1/y/../x", nil, ""},
		"a dot segment":                      {"/v1/x", "/v1/./x", nil, ""},
		"a trailing semicolon":               {"/v1/x", "/v1/x;y", nil, ""},
		"an escaped slash for a slash":       {"/v1/x", "/v1%2Fx", nil, ""},
		"a parameter":                        {"/c/{id}", "/c/lima", map[string]string{"id": "lima"}, "/c/lima"},
		"a parameter is decoded once":        {"/c/{id}", "/c/a%2520b", map[string]string{"id": "a%20b"}, "/c/a%2520b"},
		"a parameter is escaped again":       {"/c/{id}", "/c/a%20b%3Fc;d", map[string]string{"id": "a b?c;d"}, "/c/a%20b%3Fc%3Bd"},
		"a parameter in another script":      {"/c/{id}", "/c/%E6%9D%B1", map[string]string{"id": "東"}, "/c/%E6%9D%B1"},
		"a parameter with a slash":           {"/c/{id}", "/c/a%2Fb", nil, ""},
		"a parameter with a lower-case one":  {"/c/{id}", "/c/a%2fb", nil, ""},
		"a parameter with a backslash":       {"/c/{id}", "/c/a%5Cb", nil, ""},
		"a parameter that is a parent":       {"/c/{id}", "/c/%2e%2E", nil, ""},
		"a parameter that is a plain parent": {"/c/{id}", "/c/..", nil, ""},
		"a parameter that is a dot":          {"/c/{id}", "/c/%2e", nil, ""},
		"a parameter with a line break":      {"/c/{id}", "/c/a%0D%0Ab", nil, ""},
		"a parameter that is no UTF-8":       {"/c/{id}", "/c/%ff", nil, ""},
		"an empty parameter":                 {"/c/{id}", "/c/", nil, ""},
		"a bad escape":                       {"/c/{id}", "/c/%zz", nil, ""},
		"a cut escape":                       {"/c/{id}", "/c/a%2", nil, ""},
		"the root":                           {"/", "/", map[string]string{}, "/"},
		"nothing for the root":               {"/", "", nil, ""},
	}
	for name, tt := range tests {
		tmpl, err := ParseTemplate(tt.template)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if p, ok := cutPath(tt.path); ok {
			if params, ok := tmpl.match(p); ok {
				got = params
			}
		}
		if (got == nil) != (tt.want == nil) || !maps.Equal(got, tt.want) {
			t.Errorf("%s: %q matches %q with %v, want %v", name, tt.template, tt.path, got, tt.want)
			continue
		}
		if got != nil && tmpl.build(got) != tt.built {
			t.Errorf("%s: built %q, want %q", name, tmpl.build(got), tt.built)
		}
	}
}

func TestTemplate_Build_NeverLeavesTheListedPrefix(t *testing.T) {
	t.Parallel()
	tmpl, err := ParseTemplate("/v1/city/{id}/now")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"/", "..", ".", "%2e", "%2F", "%5c", "%25", "%", ";", "\\", "a", "?", "#", "%00", "é"})
		request := "/v1/city/" + strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "") + "/now"
		p, ok := cutPath(request)
		if !ok {
			return
		}
		params, ok := tmpl.match(p)
		if !ok {
			return
		}
		built := tmpl.build(params)
		u, err := url.Parse("https://h.example" + built)
		if err != nil {
			t.Fatalf("%q builds %q: %v", request, built, err)
		}
		if u.RawQuery != "" || u.Fragment != "" || u.Host != "h.example" {
			t.Fatalf("%q builds %q, which is more than a path", request, built)
		}
		if clean := path.Clean(u.Path); clean != u.Path || !strings.HasPrefix(clean, "/v1/city/") || strings.Count(clean, "/") != 4 {
			t.Fatalf("%q builds %q, which a server may read as %q", request, built, clean)
		}
	})
}

func TestTemplate_Compare_PutsLiteralsFirst(t *testing.T) {
	t.Parallel()
	parse := func(s string) Template {
		tmpl, err := ParseTemplate(s)
		if err != nil {
			t.Fatal(err)
		}
		return tmpl
	}
	for first, second := range map[string]string{
		"/a/b":     "/a/{x}",
		"/a/{x}":   "/{y}/b",
		"/a/b/{x}": "/a/{y}/c",
	} {
		if parse(first).compare(parse(second)) >= 0 || parse(second).compare(parse(first)) <= 0 {
			t.Errorf("%s does not come before %s", first, second)
		}
	}
}
