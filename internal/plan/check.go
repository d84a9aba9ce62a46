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

// A Fault is one thing that is wrong with a plan of a table.
type Fault struct {
	Plan int // its place in the table
	Key  Key // of the limit that is wrong; empty: it is another member
	text string
}

func (f Fault) Error() string { return f.text }

// Check returns everything that is wrong with a table, each with its place.
func (t Table) Check() []error {
	if len(t) < 1 || len(t) > PlansMax {
		return []error{fmt.Errorf("plans: got %d, expected 1 to %d", len(t), PlansMax)}
	}
	var errs []error
	for _, fault := range t.Faults() {
		errs = append(errs, fault)
	}
	return errs
}

// Faults returns everything that is wrong with the plans of a table, of whatever length.
func (t Table) Faults() (faults []Fault) {
	taken := map[string]bool{}
	for i, p := range t {
		fault := func(key Key, member string, got any, expected string) {
			faults = append(faults, Fault{i, key, fmt.Sprintf("plans[%d].%s: got %s, expected %s", i, member, short(got), expected)})
		}
		say := func(member, got, expected string) { fault("", member, got, expected) }
		if !nameForm.MatchString(p.Name) {
			say("name", p.Name, "1 to 32 lower-case letters, digits and inner hyphens")
		}
		if taken[p.Name] {
			say("name", p.Name, "a name that is not taken")
		}
		taken[p.Name] = true
		if !titleForm.MatchString(p.Title) {
			say("title", p.Title, "1 to 32 letters, digits, spaces, full stops, underscores and hyphens, first and last a letter or a digit")
		}
		for _, f := range Fields() {
			got := f.Of(p.Limits)
			if wrong := f.Check(got); wrong != "" {
				fault(f.Key, "limits."+string(f.Key), got, wrong)
				continue
			}
			// What is offered as the next plan must not take anything away.
			if i > 0 && f.Better(t[i-1].Limits, p.Limits) {
				fault(f.Key, "limits."+string(f.Key), got, fmt.Sprintf("no worse than %d, which plan %s before it has", f.Of(t[i-1].Limits), t[i-1].Name))
			}
		}
	}
	return faults
}

// short keeps a line a line: what is in a file comes from outside.
func short(got any) string {
	text := fmt.Sprintf("%v", got)
	if len(text) > shownMax {
		return strings.ToValidUTF8(text[:shownMax], "") + "…"
	}
	return text
}
