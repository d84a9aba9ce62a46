package wire

import (
	"slices"
	"strconv"
)

// Contains says whether v has all of part: of an object every member, at any depth, and of anything else the very same. What v has beside is
// its own.
func (v Value) Contains(part Value) bool {
	if part.Kind != Object {
		return v.Equal(part)
	}
	if v.Kind != Object {
		return false
	}
	for name, member := range part.Members {
		if mine, ok := v.Members[name]; !ok || !mine.Contains(member) {
			return false
		}
	}
	return true
}

// Equal says whether two values mean the same, whatever the order of members and the spelling of numbers.
func (v Value) Equal(w Value) bool {
	switch {
	case v.Kind != w.Kind || len(v.Members) != len(w.Members):
		return false
	case v.Kind == Number:
		return sameNumber(v.Text, w.Text)
	case v.Text != w.Text || !slices.EqualFunc(v.Items, w.Items, Value.Equal):
		return false
	}
	for name, member := range v.Members {
		if theirs, ok := w.Members[name]; !ok || !member.Equal(theirs) {
			return false
		}
	}
	return true
}

// sameNumber compares as most readers of JSON keep numbers, in 64 bits of floating point: a number that went through one of them comes back in
// another spelling, and a long one rounded. Out of range, where all would be the same infinity, the spelling decides.
func sameNumber(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil {
		return a == b
	}
	return x == y
}
