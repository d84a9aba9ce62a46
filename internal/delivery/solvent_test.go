package delivery

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"market/internal/money"
	"market/internal/postgres/pgtest"
)

func TestShort_WhatHasLeftIsNotMissed(t *testing.T) {
	t.Parallel()
	units := money.FromUnits
	for name, tt := range map[string]struct {
		holds, owed, left uint64
		want              bool
	}{
		"a unit less":                      {99, 100, 0, true},
		"as much":                          {100, 100, 0, false},
		"a unit more":                      {101, 100, 0, false},
		"what is missing has left":         {0, 100, 100, false},
		"a unit more is missing than left": {0, 100, 99, true},
		"nothing, and nothing owed":        {0, 0, 0, false},
	} {
		if got := short(units(tt.holds), units(tt.owed), units(tt.left)); got != tt.want {
			t.Errorf("%s: short is %v, want %v", name, got, tt.want)
		}
	}
}

// It is read with every look at a network, so however many calls there were, it looks at those alone that are open.
func TestLiabilities_CostALookAtWhatIsOpen(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var plan string
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL enable_seqscan = off`); err != nil { // of empty tables it would be cheaper
			return err
		}
		return tx.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+liabilitiesSQL, "eip155:1", int64(100)).Scan(&plan)
	})
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(plan), &plans); err != nil {
		t.Fatal(err)
	}
	var indexes []string
	for _, scan := range slices.Concat(plans[0].Plan.scansOf("calls"), plans[0].Plan.scansOf("refunds")) {
		indexes = append(indexes, scan.Index)
	}
	if !slices.Contains(indexes, "calls_open") || !slices.ContainsFunc(indexes, func(i string) bool { return i == "refunds_open_by_network" || i == "refunds_due" }) {
		t.Errorf("it reads %v:\n%s", indexes, plan)
	}
}
