package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/readiness"
)

func TestClosed_OnlyWhereNoNetworkIsReady(t *testing.T) {
	t.Parallel()
	yes := func(context.Context) error { return nil }
	no := func(context.Context) error { return errors.New("the gas wallet is empty") }
	slow := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, tt := range map[string]struct {
		checks map[string]readiness.Check
		want   bool
	}{
		"all are ready":                      {map[string]readiness.Check{"a": yes, "b": yes}, false},
		"one is ready":                       {map[string]readiness.Check{"a": no, "b": yes}, false},
		"none is":                            {map[string]readiness.Check{"a": no, "b": no}, true},
		"what is not known in time is ready": {map[string]readiness.Check{"a": no, "b": slow}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				opts := readiness.Options{Age: time.Minute, Limit: 2 * closedTime, Now: time.Now, Changed: func(string, error) {}}
				s := New(Config{Networks: []chain.Network{{ID: "a"}, {ID: "b"}}, Ready: readiness.New(tt.checks, opts)})
				if got := len(s.closed(t.Context())) > 0; got != tt.want {
					t.Errorf("closed: %v", got)
				}
				<-time.After(2 * closedTime) // the slow check ends, and is a no from then on
				if got, want := len(s.closed(t.Context())) > 0, tt.want || tt.checks["b"] != nil && name[0] == 'w'; got != want {
					t.Errorf("afterwards: %v, want %v", got, want)
				}
			})
		})
	}
}

func TestBadgeOf_SaysForSaleOnlyOfWhatCanBeBought(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct {
		state  catalog.State
		rest   time.Duration
		broken bool
		dead   bool
	}{
		"for sale":                {state: catalog.Listed},
		"does not answer":         {state: catalog.Listed, dead: true},
		"resting after a failure": {state: catalog.Listed, rest: time.Second, dead: true},
		"broken listing":          {state: catalog.Listed, rest: time.Second, broken: true, dead: true},
		"delisted":                {state: catalog.Delisted, dead: true},
	} {
		if got := badgeOf(tt.state, tt.rest, tt.broken, tt.dead).Word; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
