package delivery

import (
	"testing"

	"market/internal/money"
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
