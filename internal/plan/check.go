package plan

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	PlansMax = 16 // in a table
	shownMax = 100
)

var (
	nameForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	titleForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,30}[A-Za-z0-9])?$`)
)

// Check returns everything that is wrong with a table, each with its place.
func (t Table) Check() []error {
	if len(t) < 1 || len(t) > PlansMax {
		return []error{fmt.Errorf("plans: got %d, expected 1 to %d", len(t), PlansMax)}
	}
	var errs []error
	taken := map[string]bool{}
	for i, p := range t {
		say := func(member string, got any, expected string) {
			errs = append(errs, fmt.Errorf("plans[%d].%s: got %s, expected %s", i, member, short(got), expected))
		}
		if !nameForm.MatchString(p.Name) {
			say("name", p.Name, "1 to 32 lower-case letters, digits and inner hyphens")
		}
		if taken[p.Name] {
			say("name", p.Name, "a name that is not taken")
		}
		taken[p.Name] = true
		if !titleForm.MatchString(p.Title) {
			say("title", p.Title, "1 to 32 letters, digits, spaces and hyphens")
		}
		for _, f := range Fields() {
			got := f.Of(p.Limits)
			if wrong := f.Check(got); wrong != "" {
				say("limits."+string(f.Key), got, wrong)
				continue
			}
			// What is offered as the next plan must not take anything away.
			if i > 0 && f.Better(t[i-1].Limits, p.Limits) {
				say("limits."+string(f.Key), got, fmt.Sprintf("no worse than %d, which plan %s before it has", f.Of(t[i-1].Limits), t[i-1].Name))
			}
		}
	}
	return errs
}

// short keeps a line a line: what is in a file comes from outside.
func short(got any) string {
	text := fmt.Sprintf("%v", got)
	if len(text) > shownMax {
		return strings.ToValidUTF8(text[:shownMax], "") + "…"
	}
	return text
}
