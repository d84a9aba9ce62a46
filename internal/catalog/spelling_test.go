package catalog

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"market/internal/call"
)

// Ways to write the slash between two segments, a letter, and an end of a path. The first of each is the plain one; every other is read as the plain
// one, or as a way around it, by some server, proxy or library.
var (
	slashes = []string{"/", "//", "///", "/./", "/%2e/", "/x/../", "/x/%2e%2e/", "/x/%2E%2e/", "/x/.%2e/", "/x/%252e%252e/", "/..;/", "/;/", "/;x=1/", "%2f", "%2F",
		"%252f", "%5c", "%5C", `\`, `/\`, `\/`, "/%2f", "/%00/", "/%20/", "/ /", "/\t/", "%c0%af", "%e0%80%af", "%ef%bc%8f", "\uff0f", "\u2215", "/../v1/", "/%2e%2e/v1/", "/..%2fv1/",
		"/..%5cv1/", "?/", "%3f/", "#/", "%23/", "/.../", "/*/", "/~/"}
	letters = []string{"n", "%6e", "%6E", "%256e", "N", "%4e", "%c1%ae", "%e0%81%ae", "%ef%bd%8e", "\uff4e", "%u006e", "\\x6e", "n%00", "n%0d%0a", "n;", "n%3b", "n;a=b", "n?", "n%3f",
		"n#", "n%23", "%n", "%6", "n%", " n", "%20n", "n\u0301", "n%cc%81", "\u0578", "n%ff"}
	endings = []string{"", "/", "//", "/.", "/..", "/%2e", "/%2e%2e", ".", "..", "%2e", ";", ";x", "%3b", "%3bx=1", "%00", "%20", " ", "%09", "%0a", "%0d%0a", "%2f", "%5c", `\`, "?", "%3f", "#", "%23",
		"%23x", "%ff", "%c0%80", "%u0000", "~", "*", ".json", "%2ejson", ":", "::$DATA", "%", "%2", "%zz", "/..;/now", "/../now"}
)

// A segment that names one thing to everybody, and is not empty and not dots.
var (
	plainSegment   = regexp.MustCompile(`^([^/\\%\x00-\x1f\x7f]|%[0-9a-fA-F]{2})+$`)
	escapedSegment = regexp.MustCompile(`^([A-Za-z0-9._~:@+,=$&!'()*-]|%[0-9A-F]{2})+$`)
)

// names says what a segment of a path is a spelling of; false where it is not one of any one name.
func names(segment string) (string, bool) {
	if !plainSegment.MatchString(segment) {
		return "", false
	}
	name, err := url.PathUnescape(segment)
	return name, err == nil && utf8.ValidString(name) && name != "." && name != ".." && !strings.ContainsAny(name, `/\`) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || (r >= 0x7f && r < 0xa0) })
}

// judgeSpelling holds what became of one spelling against what may: the endpoint with literals alone is had by its bytes alone; one with a parameter by
// any spelling of a value that is one name; and the service is asked for just the template with that name in it, which is no other endpoint's path.
func judgeSpelling(t testing.TB, s *Snapshot, spelling string) (routed bool) {
	t.Helper()
	target, no := s.Route("weather", "GET", spelling)
	if no != nil {
		if no.Reason != call.NotFound || target.Endpoint != nil {
			t.Errorf("%q: %v with %+v, want not_found and nothing", spelling, no.Reason, target)
		}
		return false
	}
	segments, listed, asked := strings.Split(spelling, "/"), strings.Split(target.Endpoint.Path, "/"), strings.Split(target.UpstreamPath, "/")
	if len(segments) != len(listed) || len(asked) != len(listed) {
		t.Errorf("%q: asks for %s at %s", spelling, target.UpstreamPath, target.Endpoint.Path)
		return true
	}
	for i, literal := range listed {
		if !strings.HasPrefix(literal, "{") {
			if segments[i] != literal || asked[i] != literal {
				t.Errorf("%q: taken for %s, asks for %s", spelling, target.Endpoint.Path, target.UpstreamPath)
			}
			continue
		}
		name, ok := names(segments[i])
		if got, err := url.PathUnescape(asked[i]); !ok || err != nil || got != name || !escapedSegment.MatchString(asked[i]) {
			t.Errorf("%q: taken for %s, asks for %s", spelling, target.Endpoint.Path, target.UpstreamPath)
		}
	}
	u, err := target.Service.URL(target.UpstreamPath, "")
	if err != nil || u.EscapedPath() != "/base"+target.UpstreamPath || path.Clean(u.Path) != u.Path || u.Host != "api.weather.example" {
		t.Errorf("%q: asks for %s (%v)", spelling, u, err)
	}
	if again, no := s.Route("weather", "GET", target.UpstreamPath); no != nil || again.Endpoint != target.Endpoint {
		t.Errorf("%q: is %s here and %s to the service, which is another endpoint", spelling, target.Endpoint.Path, target.UpstreamPath)
	}
	return true
}

// spelled is the shelf of these tests: now costs more than any, and only any may have free calls.
func spelled(t *testing.T) *Snapshot {
	t.Helper()
	return shelf(t, nil, [2]string{"GET", "/v1/now"}, [2]string{"GET", "/v1/{any}"}, [2]string{"GET", "/v1/{any}/now"}, [2]string{"GET", "/v1/no/now"})
}

// B107: every pair of ways to write two slashes, a letter and an end, in one path.
func TestSpelling_NoCombinationReachesAnEndpointByAnotherName(t *testing.T) {
	t.Parallel()
	s := spelled(t)
	tried, routed := 0, 0
	try := func(spelling string) {
		tried++
		if judgeSpelling(t, s, spelling) {
			routed++
		}
	}
	for _, first := range slashes {
		for _, second := range slashes {
			for _, letter := range letters {
				try(first + "v1" + second + letter + "ow")
			}
			for _, end := range endings {
				try(first + "v1" + second + "now" + end)
			}
		}
	}
	for _, letter := range letters {
		for _, other := range letters {
			for _, end := range endings {
				try("/v1/" + letter + "o/" + other + "ow" + end)
			}
		}
	}
	if tried < 100_000 || routed == 0 || routed > tried/5 {
		t.Errorf("%d of %d spellings were taken for something", routed, tried)
	}
}

// B107: what nobody listed in a table, put together at random.
func TestSpelling_NoRandomPathReachesAnEndpointByAnotherName(t *testing.T) {
	t.Parallel()
	s := spelled(t)
	pieces := append(append(append([]string{"v1", "now", "no", "x", strings.Repeat("a", 600), strings.Repeat("/a", 40), "http://evil.test", "//evil.test"}, slashes...), letters...), endings...)
	rapid.Check(t, func(r *rapid.T) {
		judgeSpelling(t, s, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 9).Draw(r, "pieces"), ""))
		judgeSpelling(t, s, rapid.String().Draw(r, "text"))
	})
}

// B107: a listing whose every path is a parameter would take a spelled letter for a value, and the service would take it for its dearer endpoint.
func TestSpelling_AnEscapedNameOfAnotherEndpointIsNoValue(t *testing.T) {
	t.Parallel()
	s := spelled(t)
	for spelling, want := range map[string]string{
		"/v1/now":        "/v1/now",
		"/v1/later":      "/v1/{any}",
		"/v1/%6cater":    "/v1/{any}",
		"/v1/%6eow":      "",
		"/v1/%6e%6f%77":  "",
		"/v1/no/now":     "/v1/no/now",
		"/v1/%6eo/now":   "",
		"/v1/yes/now":    "/v1/{any}/now",
		"/v1/yes/%6eow":  "",
		"/v1/%6eo%77":    "",
		"/v1/%256eow":    "/v1/{any}", // which the service reads as %6eow
		"/v1/now%20":     "/v1/{any}",
		"/v1/now;now":    "/v1/{any}",
		"/v1/%4eow":      "/v1/{any}", // Now
		"/v1/%6eow/":     "",
		"/v1/now?%6eow":  "/v1/{any}", // a mark that is no query here is escaped
		"/v1/now%3f=now": "/v1/{any}",
	} {
		target, no := s.Route("weather", "GET", spelling)
		got := ""
		if no == nil {
			got = target.Endpoint.Path
		}
		if got != want {
			t.Errorf("%s is taken for %q, want %q", spelling, got, want)
		}
	}
}
