package config

import (
	"fmt"
	"slices"

	"market/internal/plan"
)

type plansFile struct {
	Plans []planEntry `json:"plans"`
}

type planEntry struct {
	Name   string           `json:"name"`
	Title  string           `json:"title"`
	Limits map[string]int64 `json:"limits"`
}

// readPlans reads the operator's table. Its members are those of GET /api/v1/plans, in the same units, and a plan has to have all of them: a limit that
// was forgotten is none of 0.
func readPlans(path string) (plan.Table, []error) {
	var file plansFile
	if err := readJSON(path, &file); err != nil {
		return nil, []error{err}
	}
	if n := len(file.Plans); n < 1 || n > plan.PlansMax {
		return nil, []error{fmt.Errorf("plans: got %d, expected 1 to %d", n, plan.PlansMax)}
	}
	var errs []error
	table := make(plan.Table, 0, len(file.Plans))
	for i, entry := range file.Plans {
		r := report{at: fmt.Sprintf("plans[%d].limits", i)}
		table = append(table, r.plan(entry))
		errs = append(errs, r.errs...)
	}
	if len(errs) > 0 { // what is missing is not also too small
		return nil, errs
	}
	return table, table.Check()
}

func (r *report) plan(e planEntry) plan.Plan {
	p := plan.Plan{Name: e.Name, Title: e.Title}
	left := make(map[string]bool, len(e.Limits))
	for name := range e.Limits {
		left[name] = true
	}
	for _, field := range plan.Fields() {
		key := string(field.Key)
		value, given := e.Limits[key]
		r.check(key, given, "nothing", fmt.Sprintf("%d to %d", field.Least, field.Most))
		if given && field.Check(value) == "" {
			field.Set(&p.Limits, value)
		} else if given {
			r.check(key, false, value, field.Check(value))
		}
		delete(left, key)
	}
	unknown := make([]string, 0, len(left))
	for name := range left {
		unknown = append(unknown, shorten(name))
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		r.check(name, false, name, "a limit that there is")
	}
	return p
}
