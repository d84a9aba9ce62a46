package catalog

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	pathBytesMax    = 2048
	templateLenMax  = 512
	segmentsMax     = 32
	paramLenMax     = 512
	paramNameLenMax = 64
)

// A Template is a path with parameters: "/v1/city/{id}". A parameter is one whole segment. The zero value matches nothing.
type Template struct{ segments []segment }

// A segment is literal text, or a parameter where name is set.
type segment struct{ literal, name string }

var (
	// Literals have only characters that have one spelling in a path, so that matching by bytes is matching by meaning: no percent sign,
	// and no semicolon, behind which some servers hide parameters.
	literalForm = regexp.MustCompile(`^[A-Za-z0-9._~:@+,=$!-]+$`)
	paramForm   = regexp.MustCompile(`^\{([A-Za-z_][A-Za-z0-9_-]*)\}$`)
)

// ParseTemplate reads a path template; the error says what is wrong with it.
func ParseTemplate(path string) (Template, error) {
	if !strings.HasPrefix(path, "/") {
		return Template{}, errors.New("must start with /")
	}
	if len(path) > templateLenMax {
		return Template{}, fmt.Errorf("must not be longer than %d characters", templateLenMax)
	}
	if path == "/" {
		return Template{segments: []segment{}}, nil
	}
	parts := strings.Split(path[1:], "/")
	if len(parts) > segmentsMax {
		return Template{}, fmt.Errorf("must not have more than %d segments", segmentsMax)
	}
	t := Template{segments: make([]segment, 0, len(parts))}
	seen := map[string]bool{}
	for _, part := range parts {
		if m := paramForm.FindStringSubmatch(part); m != nil {
			name := m[1]
			if len(name) > paramNameLenMax {
				return Template{}, fmt.Errorf("parameter names must not be longer than %d characters", paramNameLenMax)
			}
			if seen[name] {
				return Template{}, fmt.Errorf("parameter %s appears twice", name)
			}
			seen[name] = true
			t.segments = append(t.segments, segment{name: name})
			continue
		}
		switch {
		case part == "":
			return Template{}, errors.New("must not have empty segments or end with /")
		case part == "." || part == "..":
			return Template{}, errors.New("must not have . or .. as a segment")
		case strings.ContainsAny(part, "{}"):
			return Template{}, errors.New("a parameter must be one whole segment, such as /city/{id}")
		case !literalForm.MatchString(part):
			return Template{}, errors.New("may have letters, digits and . _ ~ : @ + , = $ ! - in its segments, nothing escaped")
		}
		t.segments = append(t.segments, segment{literal: part})
	}
	return t, nil
}

// Shape is the template without the names of its parameters. Two templates of one shape match the same paths.
func (t Template) Shape() string {
	var b strings.Builder
	for _, s := range t.segments {
		b.WriteByte('/')
		if s.name != "" {
			b.WriteString("{}")
		} else {
			b.WriteString(s.literal)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// compare orders templates so that, of two that match one path, the one with the earlier literal comes first.
func (t Template) compare(u Template) int {
	for i := range min(len(t.segments), len(u.segments)) {
		a, b := t.segments[i], u.segments[i]
		switch {
		case a.name == "" && b.name != "":
			return -1
		case a.name != "" && b.name == "":
			return 1
		}
		if c := strings.Compare(a.literal, b.literal); c != 0 {
			return c
		}
	}
	return len(t.segments) - len(u.segments)
}

// A splitPath is a request's path, cut once. Everything that follows looks at these segments and never at the path again, so no two
// places can read one path differently.
type splitPath struct {
	raw     []string // as on the wire
	decoded []string
}

// cutPath takes an escaped path apart; false where no listing can have it: not absolute, empty or dot segments, a trailing slash, bad
// escapes, or a segment that would be more than one segment once decoded.
func cutPath(escaped string) (splitPath, bool) {
	if !strings.HasPrefix(escaped, "/") || len(escaped) > pathBytesMax {
		return splitPath{}, false
	}
	if escaped == "/" {
		return splitPath{}, true
	}
	raw := strings.Split(escaped[1:], "/")
	if len(raw) > segmentsMax {
		return splitPath{}, false
	}
	p := splitPath{raw: raw, decoded: make([]string, len(raw))}
	for i, s := range raw {
		d, err := url.PathUnescape(s)
		if err != nil || !goodSegment(d) {
			return splitPath{}, false
		}
		p.decoded[i] = d
	}
	return p, true
}

// goodSegment refuses what an upstream might take for something other than one name. Backslashes are slashes to some servers.
func goodSegment(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= paramLenMax && utf8.ValidString(s) &&
		!strings.ContainsAny(s, `/\`) && !strings.ContainsFunc(s, unicode.IsControl)
}

// match returns the parameters of a path that the template matches.
func (t Template) match(p splitPath) (map[string]string, bool) {
	if t.segments == nil || len(t.segments) != len(p.raw) {
		return nil, false
	}
	params := map[string]string{}
	for i, s := range t.segments {
		switch {
		case s.name != "":
			params[s.name] = p.decoded[i]
		case s.literal != p.raw[i]:
			return nil, false
		}
	}
	return params, true
}

// build makes the escaped path from the template itself and escaped parameters. The caller's spelling is not used, so the result has
// the template's segments, one for one, and can't leave what was listed.
func (t Template) build(params map[string]string) string {
	if len(t.segments) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, s := range t.segments {
		b.WriteByte('/')
		if s.name != "" {
			b.WriteString(url.PathEscape(params[s.name]))
		} else {
			b.WriteString(s.literal)
		}
	}
	return b.String()
}
