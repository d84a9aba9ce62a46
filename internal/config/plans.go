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
	table, bad := make(plan.Table, 0, len(file.Plans)), make([][]plan.Key, len(file.Plans))
	for i, entry := range file.Plans {
		r := report{at: fmt.Sprintf("plans[%d].limits", i)}
		var p plan.Plan
		p, bad[i] = r.plan(entry)
		table = append(table, p)
		errs = append(errs, r.errs...)
	}
	for _, fault := range table.Faults() {
		// What is missing is not also too small, and says nothing about the plan after it.
		said := slices.Contains(bad[fault.Plan], fault.Key) || fault.Plan > 0 && slices.Contains(bad[fault.Plan-1], fault.Key)
		if !said || fault.Key == "" {
			errs = append(errs, fault)
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return table, nil
}

// plan reads an entry, and says which limits it could not read.
func (r *report) plan(e planEntry) (p plan.Plan, bad []plan.Key) {
	p = plan.Plan{Name: e.Name, Title: e.Title}
	left := make(map[string]bool, len(e.Limits))
	for name := range e.Limits {
		left[name] = true
	}
	for _, field := range plan.Fields() {
		key := string(field.Key)
		value, given := e.Limits[key]
		r.check(key, given, "nothing", fmt.Sprintf("%d to %d", field.Least, field.Most))
		switch wrong := field.Check(value); {
		case given && wrong == "":
			field.Set(&p.Limits, value)
		case given:
			r.check(key, false, value, wrong)
			fallthrough
		default:
			bad = append(bad, field.Key)
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
	return p, bad
}
