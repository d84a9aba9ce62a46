package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/outage"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

// Two callers in different networks.
const here, elsewhere = "192.0.2.1", "203.0.113.1"

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

// twoOfOneNetwork are two strikes by a caller over the sound replica. A failure of another network, that this replica met, is evidence of the second.
func (r row) twoOfOneNetwork(t *testing.T) {
	t.Helper()
	r.shop.record(t, r.failure(t, here, r.sound))
	pgtest.Shift(t, r.db, rest)
	joins := r.failure(t, elsewhere, r.owner)
	r.shop.record(t, r.failure(t, here, r.sound))
	r.shop.record(t, joins)
}

func TestRecorder_Record_ANetworkWhoseEvidenceIsExcusedIsNoSource(t *testing.T) {
	t.Parallel()
	r := newRow(t, 2)
	r.twoOfOneNetwork(t)
	r.breaks(t)
	pgtest.Shift(t, r.db, rest)
	r.shop.record(t, r.failure(t, here, r.sound))
	r.shop.wantState(t, "with three strikes of one network", catalog.Held)
	found := r.shop.strikes(t)
	if d := found.Delistings; len(d) != 1 || d[0].Sources != 1 {
		t.Errorf("%+v, want a hold by one network", d)
	}
	if spread := found.Summary.Spread; spread.Sources != 1 || spread.Evidence != 3 {
		t.Errorf("%+v, want three failures of one network", spread)
	}
	// It is shown all the same, and marked.
	second := found.Strikes[1]
	if len(second.Evidence) != 2 || second.Spread.Evidence != 1 || second.Spread.Sources != 1 || second.Excused != 1 || len(second.Calls) != 2 {
		t.Fatalf("%+v, want two failures, one of them excused", second)
	}
	for _, e := range second.Evidence {
		if e.Excused != (e.Network == call.Network(r.failure(t, elsewhere, r.owner).Source)) {
			t.Errorf("of %s: excused = %v", e.Network, e.Excused)
		}
	}
}

// B136: what a delisting rests on can be excused when it stands already.
func TestGuard_ADelistingWhoseEvidenceIsExcusedIsCountedAgain(t *testing.T) {
	t.Parallel()
	r := newRow(t, 2)
	r.twoOfOneNetwork(t)
	pgtest.Shift(t, r.db, rest)
	r.shop.record(t, r.failure(t, here, r.sound))
	r.shop.wantState(t, "with evidence of two networks", catalog.Delisted)
	r.breaks(t)
	now := r.shop.wantState(t, "when one of them is excused", catalog.Held)
	if now.StateCause != catalog.CauseVoidHeld || now.StateBy != catalog.System || !strings.Contains(now.StateReason, "outage") {
		t.Errorf("it is held for %s by %v: %s", now.StateCause, now.StateBy, now.StateReason)
	}
	r.shop.wantStrikes(t, "then", strikes.Open, strikes.Open, strikes.Open)
	r.tick(t, none)
	entries, _, _, err := audit.Store{}.List(t.Context(), r.db, r.shop.service.ID, 10, "")
	if err != nil || len(entries) != 1 || entries[0].Action != audit.Recount || entries[0].Subject != audit.Service("shop-0") {
		t.Errorf("the audit has %+v, %v; want that it was counted again, once", entries, err)
	}
}

// What an admin has upheld counts, whatever becomes of its evidence.
func TestGuard_ADelistingByStrikesThatWereUpheldStands(t *testing.T) {
	t.Parallel()
	r := newRow(t, 1)
	for n := range policy.Limit {
		if n > 0 {
			pgtest.Shift(t, r.db, rest)
		}
		r.shop.record(t, r.failure(t, here, r.owner))
	}
	for _, strike := range r.shop.rows(t) {
		if _, err := r.review().Uphold(t.Context(), strike.ID, catalog.AdminToken, "it says so itself"); err != nil {
			t.Fatal(err)
		}
	}
	r.breaks(t)
	r.shop.wantState(t, "with strikes that were upheld", catalog.Delisted)
	if q := r.queue(t, 0, 10); slugs(q) != "shop-0" {
		t.Errorf("under strike: %s, want shop-0", slugs(q))
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
		if text := noticeOf(o, nil).Text(); strings.Contains(text, of.String()) != (replica == of) {
			t.Errorf("the notice: %s", text)
		}
	}
}
