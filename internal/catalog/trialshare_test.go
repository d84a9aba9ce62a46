package catalog_test

import (
	"slices"
	"testing"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
)

// What one caller gets of the trial calls is never more than there are, and follows their number where nothing is said.
func TestStore_EditEndpoint_ACallersShareOfTheTrialCalls(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	id := s.Endpoints[0].ID
	for _, step := range []struct {
		patch             string
		perDay, perCaller int
		wrong             string // empty: it is taken
	}{
		{`{"trial_calls_per_day":5}`, 5, 0, ""},
		{`{"trial_calls_per_caller":6}`, 5, 0, "/trial_calls_per_caller"},
		{`{"trial_calls_per_caller":5}`, 5, 5, ""},
		{`{"trial_calls_per_caller":2}`, 5, 2, ""},
		{`{"trial_calls_per_day":1}`, 5, 2, "/trial_calls_per_caller"},
		{`{"trial_calls_per_day":0}`, 5, 2, "/trial_calls_per_caller"},
		{`{"trial_calls_per_caller":0}`, 5, 2, "/trial_calls_per_caller"},
		{`{"trial_calls_per_day":2}`, 2, 2, ""},
		{`{"trial_calls_per_day":9,"trial_calls_per_caller":3}`, 9, 3, ""},
		{`{"description":"Rain"}`, 9, 3, ""},
		{`{"trial_calls_per_caller":null}`, 9, 0, ""},
		{`{"trial_calls_per_day":0}`, 0, 0, ""},
		{`{"trial_calls_per_caller":1}`, 0, 0, "/trial_calls_per_caller"},
	} {
		out, err := editEndpoint(t, db, "weather", id, patch(step.patch), catalog.Rules{})
		if step.wrong == "" && (err != nil || !out.Changed) || step.wrong != "" && !slices.Equal(fieldsOf(err), []string{step.wrong}) {
			t.Errorf("%s: changed %v, %v", step.patch, out.Changed, err)
		}
		if got := find(t, db, "weather").Endpoints[0]; got.TrialCallsPerDay != step.perDay || got.TrialCallsPerCaller != step.perCaller {
			t.Errorf("after %s there are %d, and %d for a caller; want %d and %d", step.patch, got.TrialCallsPerDay, got.TrialCallsPerCaller, step.perDay, step.perCaller)
		}
	}
}

func TestStore_Create_KeepsACallersShareOfTheTrialCalls(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	d := draft(t, "weather", "/")
	d.Endpoints[0].TrialCallsPerCaller = 2
	s := create(t, db, d)
	for _, e := range []*catalog.Endpoint{s.Endpoints[0], find(t, db, s.Slug).Endpoints[0]} {
		if e.TrialCallsPerDay != 3 || e.TrialCallsPerCaller != 2 {
			t.Errorf("%d trial calls, %d for a caller", e.TrialCallsPerDay, e.TrialCallsPerCaller)
		}
	}
}
