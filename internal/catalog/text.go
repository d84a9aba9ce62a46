package catalog

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Joiners shape the letters of some scripts and put emoji together. Between any other characters they only make two texts that look the same.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// textProblem says what is wrong with a text that people will read; empty for nothing.
func textProblem(s string, low, high int) string {
	switch n := utf8.RuneCountInString(s); {
	case n < low && low == 1:
		return "must not be empty"
	case n < low || n > high:
		return fmt.Sprintf("must have %d to %d characters", low, high)
	case strings.ContainsFunc(s, misleading):
		return "must not have control characters or characters that turn the writing direction"
	case hides(s):
		return "must not have characters that cannot be seen"
	case strings.TrimSpace(s) != s:
		return "must not begin or end with a space"
	}
	return ""
}

// misleading finds characters that change how text around them is read or shown.
func misleading(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// hides finds characters that take no place or look like a space, behind which a second "Weather" passes for the first.
func hides(s string) bool {
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case r == zeroWidthJoiner || r == zeroWidthNonJoiner:
			if i == 0 || i == len(runes)-1 || runes[i-1] < utf8.RuneSelf || runes[i+1] < utf8.RuneSelf {
				return true
			}
		case r != ' ' && unicode.IsSpace(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point) && r != ' ':
			return true
		}
	}
	return false
}
