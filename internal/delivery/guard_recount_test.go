package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/catalog"
	"market/internal/outage"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

// A caller.
const here = "192.0.2.1"

// A row is a street on which one replica is about to be found broken, and another one is not. The first shop is judged by so many networks.
type row struct {
	street
	shop  shelf
	sound uuid.UUID // the replica that is not
}

func newRow(t *testing.T, sources int) row {
	t.Helper()
	s := newStreet(t, 1, 1)
	return row{street: s, shop: s.shops[0].needing(sources), sound: uuid.Must(uuid.NewV7())}
}

// failure is a call of the first shop that is asked now, by a caller over a replica.
func (r row) failure(t *testing.T, from string, over uuid.UUID) Delivery {
	t.Helper()
	return r.shop.trial(t).called(from).walkedBy(over).failed()
}

// breaks makes it known that this replica is broken.
func (r row) breaks(t *testing.T) {
	t.Helper()
	r.tick(t, silent)
	if all := r.outages(t); len(all) != 1 || all[0].Replica != r.owner {
		t.Fatalf("outages %+v, want one of this replica", all)
	}
}

// A strike that rests on an outage of ours took part in a delisting, also where a success has cleared it since.
func TestGuard_AStrikeThatWasClearedAfterTheDelistingFallsToo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		third  bool // that delists
		state  catalog.State
		second strikes.State
	}{
		"after a delisting":    {true, catalog.Listed, strikes.Voided},
		"where there was none": {false, catalog.Listed, strikes.Cleared},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRow(t, 1)
			r.shop.record(t, r.failure(t, here, r.sound))
			pgtest.Shift(t, r.db, rest)
			r.shop.record(t, r.failure(t, here, r.owner))
			pgtest.Shift(t, r.db, rest)
			success := r.shop.trial(t).walkedBy(r.sound).served()
			if tt.third {
				r.shop.record(t, r.failure(t, here, r.sound))
				r.shop.wantState(t, "with three strikes", catalog.Delisted)
			}
			pgtest.Shift(t, r.db, time.Second)
			r.shop.record(t, success)
			if got := r.shop.states(t)[:2]; got[0] != strikes.Cleared || got[1] != strikes.Cleared {
				t.Fatalf("after the success the first two are %v", got)
			}
			r.breaks(t)
			r.shop.wantState(t, "without the second", tt.state)
			if got := r.shop.states(t); got[0] != strikes.Cleared || got[1] != tt.second {
				t.Errorf("the first two are %v, want the second %s", got[:2], tt.second)
			}
		})
	}
}

// Which process it was is for the operator: the notice names it.
func TestVoidReason_NamesNoReplica(t *testing.T) {
	t.Parallel()
	of := uuid.Must(uuid.NewV7())
	for replica, want := range map[uuid.UUID]string{of: "of one of its replicas", {}: "of the marketplace itself"} {
		o := outage.Outage{ID: uuid.Must(uuid.NewV7()), Replica: replica, State: outage.State{Cause: outage.Services}}
		if text := voidReason(o); strings.Contains(text, of.String()) || !strings.Contains(text, want) {
			t.Errorf("%s: want it %q, without an id", text, want)
		}
		if text := noticeText(o, nil); strings.Contains(text, of.String()) != (replica == of) {
			t.Errorf("the notice: %s", text)
		}
	}
}
