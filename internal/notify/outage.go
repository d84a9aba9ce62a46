package notify

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Outage is what the operator is told of a trouble, by somebody who knows it: three answers in plain words. Nothing in it is a secret, and what comes
// from outside in it is bounded and clean.
//
// A notice adds by itself since when it is so, that waiting work stays queued, and that the next notice comes only after it has worked again.
type Outage struct {
	What   string // what stopped, as one sentence without its full stop; what is said first is the subject of the mail
	Effect string // what that stops and what carries on, and when we try next where that is known; sentences, the last one without its full stop
	Look   string // where to look, one a line: a URL, a page of ours ("/admin/outages"), or words ("the resolver of this machine")
}

// Text is all of it in one line, for a log.
func (o Outage) Text() string {
	parts := []string{o.What}
	if o.Effect != "" {
		parts = append(parts, upperFirst(o.Effect))
	}
	if looks := o.looks(); len(looks) > 0 {
		parts = append(parts, "Look at "+strings.Join(looks, ", and at "))
	}
	return oneLine(strings.Join(parts, ". "))
}

// looks are the lines of Look.
func (o Outage) looks() []string {
	var out []string
	for line := range strings.SplitSeq(o.Look, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func upperFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

// oneLine leaves nothing that ends a line, or that a terminal obeys: words of others may be in it.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	}), " ")
}

// shorten cuts at a number of bytes, between characters.
func shorten(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
