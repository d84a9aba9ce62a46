package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var adminAuditTemplate = adminTemplate("audit")

// An auditPage lists what was decided, the newest first.
type auditPage struct {
	frame
	Service     string // only about this one; empty: about all
	Rows        []auditOnPage
	First, Next string // addresses of pages; empty where there is none
	Paged       bool
}

type auditOnPage struct {
	What, By, Slug, Reason string
	At                     *moment
	Changes                []changeOnPage
}

type changeOnPage struct{ Name, Before, After string }

// changesOf compares how something stood before and after, member by member. What did not change is left out.
func changesOf(before, after json.RawMessage) (changes []changeOnPage) {
	was, is := flat(before), flat(after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was[name] != is[name] {
			changes = append(changes, changeOnPage{Name: brief(strings.ReplaceAll(name, "_", " "), 80), Before: orNone(was[name]), After: orNone(is[name])})
		}
	}
	return changes
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return brief(s, 200)
}

// flat writes the members of a document, and those of the objects in it, as "strikes 01a2…": "open".
func flat(document json.RawMessage) map[string]string {
	var members map[string]any
	_ = json.Unmarshal(document, &members) // what is no object has no members
	out := map[string]string{}
	for name, v := range members {
		inner, ok := v.(map[string]any)
		if !ok {
			out[name] = worded(v)
			continue
		}
		for key, value := range inner {
			out[name+" "+key] = worded(value)
		}
	}
	return out
}

func worded(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return fmt.Sprintf("%g", v)
	}
	text, _ := json.Marshal(v) // it was JSON
	return string(text)
}
