package delivery

import (
	"encoding/json"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
)

// newHeldShelf returns a shelf whose service has been on it for two days.
func newHeldShelf(t *testing.T) shelf {
	t.Helper()
	s := newShelf(t)
	pgtest.Shift(t, s.db, 2*HoldingRule.Window)
	return s
}

// move changes the state of the service.
func (s shelf) move(t *testing.T, c catalog.Change) {
	t.Helper()
	if moved, err := (catalog.Store{}).Move(t.Context(), s.db, s.service.ID, c); err != nil || !moved {
		t.Fatalf("moved %v, %v", moved, err)
	}
}

var putBack = catalog.Change{Cause: catalog.CauseRelisting, By: catalog.AdminToken, Reason: "looked at"}

// holds runs a round and says whether the shelf's service was held by it.
func (s shelf) holds(t *testing.T) bool {
	t.Helper()
	before := s.world(t).Service
	if _, err := NewHolder(s.db, HoldingRule).Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	return before == catalog.Listed && s.world(t).Service == catalog.Held
}

// of is a call of another payer, in a network of its own.
func (d Delivery) of(payer byte) Delivery {
	d = d.by(payer)
	d.Source = netip.AddrFrom4([4]byte{198, 51, payer, 1})
	return d
}

// rejects records so many calls of so many payers in turn that the service rejects, each in a network of its own.
func (s shelf) rejects(t *testing.T, calls, payers int) {
	t.Helper()
	for n := range calls {
		s.record(t, s.asked(t).end(call.RejectedByService, "status 422").of(byte(n%payers+1)))
	}
}

func TestHolder_HoldsWhatRejectsMostValidInputOfSeveralPayers(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 19, 3)
	if s.holds(t) {
		t.Error("held after 19 calls")
	}
	s.rejects(t, 1, 1)
	if !s.holds(t) {
		t.Fatal("not held after 20 calls")
	}
	s.want(t, "after a hold", world{Deliveries: 20, Refunds: 20, Jobs: 20, Service: catalog.Held})
	events, err := catalog.Store{}.Events(t.Context(), s.db, s.service.ID)
	if err != nil || events[0].Cause != catalog.CauseReview || events[0].By != catalog.System || !strings.Contains(events[0].Reason, "it rejected 20 with a 4xx, to 3 payers in 3 networks") {
		t.Errorf("the last event is %+v, %v", events[0], err)
	}
}

// Wallets cost nothing: whoever has found valid input that a healthy service refuses would have it off the shelf as often as it is put back.
func TestHolder_FourWalletsOfOneNetworkHoldNobody(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	for n := range 20 {
		d := s.asked(t).end(call.RejectedByService, "status 422").by(byte(n%4 + 1))
		d.Source = netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
		s.record(t, d)
	}
	if s.holds(t) {
		t.Error("held for what four wallets of one network met")
	}
	for n := range byte(2) {
		s.record(t, s.asked(t).end(call.ListingBroken, "refuses its example").by(n+1))
		pgtest.Shift(t, s.db, rest)
	}
	if s.holds(t) {
		t.Error("held for its example that two wallets of one network met")
	}
}

func TestHolder_TwoPayersHoldNobody(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 24, 2)
	s.record(t, s.asked(t).served().by(3)) // a third one, to whom nothing went wrong
	if s.holds(t) {
		t.Error("held for what two payers met")
	}
}

func TestHolder_HoldsWhatThrottlesOrAnswersTooMuch(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	var asked []Delivery // all before the first one comes back: the service rests after it
	for n := range 21 {
		asked = append(asked, s.asked(t).of(byte(n%3+1)))
	}
	for n, d := range asked {
		switch {
		case n < 10:
			d = d.served()
			d.Payer[0] = byte(n%3 + 1)
		case n < 16:
			d = d.end(call.UpstreamThrottled, "status 429")
		default:
			d = d.end(call.UpstreamTooLarge, "too large")
		}
		s.record(t, d)
	}
	if !s.holds(t) {
		t.Error("not held for 6 throttled and 5 too large of 21")
	}
	if w := s.world(t); w.OpenStrikes != 0 {
		t.Errorf("%d strikes", w.OpenStrikes)
	}
}

func TestHolder_HoldsWhatRefusesItsOwnExampleToTwo(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	broken := func(payer byte) {
		s.record(t, s.asked(t).end(call.ListingBroken, "refuses its example").of(payer))
		pgtest.Shift(t, s.db, rest)
	}
	broken(1)
	broken(1)
	if s.holds(t) {
		t.Error("held for what one payer met")
	}
	s.record(t, s.asked(t).served())
	pgtest.Shift(t, s.db, time.Microsecond)
	broken(2)
	if !s.holds(t) {
		t.Error("not held after two payers, and nothing served since")
	}
}

func TestHolder_ServedSinceItsExampleBrokeIsNotHeld(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	for payer := range byte(2) {
		s.record(t, s.asked(t).end(call.ListingBroken, "refuses its example").of(payer+1))
		pgtest.Shift(t, s.db, rest)
	}
	s.record(t, s.asked(t).served())
	if s.holds(t) {
		t.Error("held although a call was served since")
	}
}

// facts reads what is looked at of the shelf's service.
func (s shelf) facts(t *testing.T) HoldingFacts {
	t.Helper()
	var found []heldFacts
	err := bounded(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		found, err = NewHolder(s.db, HoldingRule).facts(t.Context(), tx, nil)
		return err
	})
	if err != nil || len(found) != 1 || found[0].service != s.service.ID {
		t.Fatalf("facts %+v, %v", found, err)
	}
	return found[0].facts
}

// Only paid calls from outside are facts: what costs nothing, or is ours or the provider's own, could be made to look like anything. What an
// outage of ours excused was asked, and nothing went wrong with it that is a fact.
func TestHolder_WhatIsNoFact(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	rejected := s.asked(t).end(call.RejectedByService, "status 422")
	s.record(t, rejected.from(call.Unattributed))
	s.record(t, s.asked(t).end(call.RejectedByService, "status 422").from(call.Own))
	s.record(t, s.asked(t).end(call.RejectedByService, "status 422").from(call.Provider))
	s.record(t, s.trial(t).end(call.RejectedByService, "status 422"))
	s.refuse(t, s.refusal(call.InputInvalid, "192.0.2.7"))
	for _, reason := range []call.Reason{call.UpstreamThrottled, call.UpstreamTooLarge, call.ListingBroken} {
		d := s.asked(t).end(reason, "excused")
		d.Party = call.Platform
		s.record(t, d)
	}
	if got, want := s.facts(t), (HoldingFacts{Asked: 4, Rejected: 1, RejectedPayers: 1}); got != want {
		t.Errorf("facts %+v, want %+v", got, want)
	}
	s.fail(t)
	met, _ := s.paid(t) // the cooldown: it was not asked
	s.record(t, met.end(call.InCooldown, ""))
	if got, want := s.facts(t), (HoldingFacts{Asked: 5, Rejected: 1, RejectedPayers: 1}); got != want {
		t.Errorf("after a failure and a call that was not asked: facts %+v, want %+v", got, want)
	}
}

func TestHolder_LooksBackOneWindowToTheMicrosecond(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 20, 3)
	pgtest.Shift(t, s.db, HoldingRule.Window)
	if s.holds(t) {
		t.Error("held exactly a window later")
	}
	s.write(t, `UPDATE market_clock SET shift = shift - interval '1 microsecond'`)
	if !s.holds(t) {
		t.Error("not held just inside the window")
	}
}

// What an admin has seen and put back is not held again for the same calls.
func TestHolder_APutBackServiceStartsAnew(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 20, 3)
	if !s.holds(t) {
		t.Fatal("not held")
	}
	s.move(t, putBack) // at the very moment of the last call
	if s.holds(t) {
		t.Error("held again for what an admin has seen")
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	s.rejects(t, 19, 3)
	if s.holds(t) {
		t.Error("held again for 19 calls and older ones")
	}
	s.rejects(t, 1, 1)
	if !s.holds(t) {
		t.Error("not held again for 20 new calls")
	}
}

// Of replicas that look at once, one holds a service, and one alone tells of it.
func TestHolder_OfManyReplicasOneTells(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 20, 3)
	var wg sync.WaitGroup
	var told atomic.Int32
	for range 3 {
		wg.Go(func() {
			notices, err := NewHolder(s.db, HoldingRule).Once(t.Context())
			if err != nil {
				t.Error(err)
			}
			told.Add(int32(len(notices))) //nolint:gosec // at most one
		})
	}
	wg.Wait()
	if got := s.world(t).Service; told.Load() != 1 || got != catalog.Held {
		t.Errorf("%d replicas tell of the service, which is %s", told.Load(), got)
	}
	if events, err := (catalog.Store{}).Events(t.Context(), s.db, s.service.ID); err != nil || len(events) != 2 {
		t.Errorf("events %+v, %v", events, err)
	}
}

// The operator is told once that a service is held, whoever held it, and once that it is held no more.
func TestHolder_TellsOfEachHoldAndOfItsEnd(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	tells := func(when, want string, over bool) {
		t.Helper()
		for n := range 2 {
			told, err := NewHolder(s.db, HoldingRule).Once(t.Context())
			switch {
			case err != nil:
				t.Fatal(err)
			case n == 0 && want != "":
				if len(told) != 1 || told[0].Service != "weather" || told[0].Over != over || !strings.Contains(told[0].Text, want) {
					t.Errorf("%s: told %+v, want %q", when, told, want)
				}
			case len(told) != 0:
				t.Errorf("%s: told %+v", when, told)
			}
		}
	}
	tells("at first", "", false)
	s.rejects(t, 20, 3)
	tells("held by its figures", "is held for review since 2026-01-04 03:04:05 UTC, by system: of 20 paid calls", false)
	s.move(t, putBack)
	tells("put back", "not held for review any more: it is listed since 2026-01-04 03:04:05 UTC, by admin token: looked at", true)
	s.move(t, catalog.Change{Cause: catalog.CauseReview, By: catalog.Recorder, Reason: "3 strikes from one network"})
	tells("held by its strikes", "by recorder: 3 strikes from one network", false)
	s.move(t, catalog.Change{Cause: catalog.CauseSuspension, By: catalog.AdminToken, Reason: "for good reasons"})
	tells("suspended", "it is suspended since", true)
}

const outageSQL = `
INSERT INTO outages (id, replica, cause, began_at, reaches_back_to, held_at, ended_at, asked, failed, providers)
VALUES (gen_random_uuid(), NULL, 'canaries', market_now() + $1, market_now() + $1, market_now() + $1, market_now() + $2, 0, 0, 0)`

// What stands between us and the services may refuse everything in their place: what comes back while we have an outage is no fact.
func TestHolder_WhatComesBackInAnOutageOfOursIsNoFact(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 1, 1)
	s.record(t, s.asked(t).served())
	for name, tt := range map[string]struct {
		from time.Duration
		to   *time.Duration
		want int
	}{
		"it ended just before":  {-time.Hour, new(-time.Microsecond), 1},
		"it ended right then":   {-time.Hour, new(time.Duration(0)), 0},
		"it began right then":   {0, new(time.Hour), 0},
		"it began just after":   {time.Microsecond, new(time.Hour), 1},
		"it has not ended yet":  {-time.Hour, nil, 0},
		"it is to begin, later": {time.Hour, nil, 1},
	} {
		s.write(t, `DELETE FROM outages`)
		s.write(t, outageSQL, tt.from, tt.to)
		// What was served was served, whatever else went wrong.
		if got := s.facts(t); got.Rejected != tt.want || got.Asked != 1+tt.want || !got.LastServed.Equal(s.opened.Add(2*HoldingRule.Window)) {
			t.Errorf("%s: facts %+v, want %d rejected", name, got, tt.want)
		}
	}
}

// A replica that read the facts before a service was held and put back does not hold it again by them.
func TestHolder_OldFactsHoldNobodyAgain(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 20, 3)
	if _, holds := HoldingRule.Holds(s.facts(t)); !holds {
		t.Fatal("the facts hold nobody")
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	s.move(t, catalog.Change{Cause: catalog.CauseReview, By: catalog.System, Reason: "for the test"})
	s.move(t, putBack)
	if err := NewHolder(s.db, HoldingRule).hold(t.Context(), s.service.ID); err != nil || s.world(t).Service != catalog.Listed {
		t.Errorf("it is %s, %v", s.world(t).Service, err)
	}
}

// However busy services are, no more rows are read than the record of all of them is made of.
func TestHolder_ReadsABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.many(t, false, 1000)
	s.write(t, `ANALYZE deliveries`)
	var plan string
	const most = 100
	err := bounded(t.Context(), s.db, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+holdingSQL, 24*time.Hour, 1, most, 1_000_000, (*uuid.UUID)(nil)).Scan(&plan)
	})
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(plan), &plans); err != nil {
		t.Fatal(err)
	}
	scans := plans[0].Plan.scansOf("deliveries")
	if len(scans) != 2 || scans[1].Index != "deliveries_suspended" || scans[1].Rows != 0 || scans[0].Rows != most || scans[0].Removed > 0 || scans[0].Index != "deliveries_of_paid_record" || scans[0].Type != "Index Only Scan" {
		t.Errorf("scans %+v of\n%s", scans, plan)
	}
}
