package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"market/internal/refusal"
)

// fieldsMax bounds how many problems one answer lists.
const fieldsMax = 100

// A form reads the members of one JSON object, and gathers everything that is wrong with them under their JSON pointers. Problems go to
// one list, shared by the forms of nested objects, so that the sender learns all of them at once.
type form struct {
	at       string // JSON pointer of the object
	members  map[string]any
	read     map[string]bool
	problems *[]refusal.Field
}

func newForm(at string, v any, problems *[]refusal.Field) (*form, bool) {
	members, ok := v.(map[string]any)
	f := &form{at: at, members: members, read: map[string]bool{}, problems: problems}
	if !ok {
		f.report(at, "must be an object")
	}
	return f, ok
}

func (f *form) report(pointer, format string, args ...any) {
	if len(*f.problems) < fieldsMax {
		*f.problems = append(*f.problems, refusal.Field{Name: pointer, Message: fmt.Sprintf(format, args...)})
	}
}

// pointer names a member of the object.
func (f *form) pointer(name string) string {
	return f.at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// wrong reports a problem with a member.
func (f *form) wrong(name, format string, args ...any) {
	f.report(f.pointer(name), format, args...)
}

// member returns a member and marks it as known. Null is not a way to leave something out.
func (f *form) member(name string) (any, bool) {
	f.read[name] = true
	v, ok := f.members[name]
	if ok && v == nil {
		f.wrong(name, "must not be null; leave it out instead")
		return nil, false
	}
	return v, ok
}

// given says whether a member is there at all, null or not.
func (f *form) given(name string) bool {
	_, ok := f.members[name]
	return ok
}

// end reports the members that nobody asked for.
func (f *form) end() {
	for _, name := range slices.Sorted(maps.Keys(f.members)) {
		if !f.read[name] {
			f.wrong(shorten(name, 60), "is not a known member")
		}
	}
}

// text reads a string of low to high characters; an absent one is only wrong where low is not 0.
func (f *form) text(name string, low, high int) string {
	v, ok := f.member(name)
	if !ok {
		if low > 0 && !f.given(name) {
			f.wrong(name, "is required")
		}
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.wrong(name, "must be a string")
		return ""
	}
	if problem := textProblem(s, low, high); problem != "" {
		f.wrong(name, "%s", problem)
		return ""
	}
	return s
}

// textProblem says what is wrong with a text that people will read; empty for nothing.
func textProblem(s string, low, high int) string {
	switch n := utf8.RuneCountInString(s); {
	case n < low && low == 1:
		return "must not be empty"
	case n < low || n > high:
		return fmt.Sprintf("must have %d to %d characters", low, high)
	case strings.ContainsFunc(s, misleading):
		return "must not have control characters or characters that turn the writing direction"
	}
	return ""
}

// misleading finds characters that change how text around them is read or shown.
func misleading(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// choice reads a string that must be one of a few.
func (f *form) choice(name, otherwise string, of []string) string {
	if !f.given(name) && otherwise != "" {
		f.read[name] = true
		return otherwise
	}
	s := f.text(name, 1, 100)
	if s != "" && !slices.Contains(of, s) {
		f.wrong(name, "must be one of %s", strings.Join(of, ", "))
		return ""
	}
	return s
}

// whole reads an integer from low to high.
func (f *form) whole(name string, otherwise, low, high int) int {
	v, ok := f.member(name)
	if !ok {
		return otherwise
	}
	n, ok := v.(json.Number)
	i, err := strconv.Atoi(string(n))
	if !ok || err != nil || i < low || i > high {
		f.wrong(name, "must be a whole number from %d to %d", low, high)
		return otherwise
	}
	return i
}

// yes reads true or false; an absent one is false.
func (f *form) yes(name string) bool {
	v, ok := f.member(name)
	if !ok {
		return false
	}
	yes, ok := v.(bool)
	if !ok {
		f.wrong(name, "must be true or false")
	}
	return yes
}

// list reads an array of low to high elements.
func (f *form) list(name string, low, high int) []any {
	v, ok := f.member(name)
	if !ok {
		if low > 0 && !f.given(name) {
			f.wrong(name, "is required")
		}
		return nil
	}
	elements, ok := v.([]any)
	if !ok {
		f.wrong(name, "must be an array")
		return nil
	}
	if len(elements) < low || len(elements) > high {
		f.wrong(name, "must have %d to %d elements", low, high)
		return nil
	}
	return elements
}
