package delivery

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
	"market/internal/switches"
)

var suspension = switches.Name{Kind: switches.SuspendStrikes}

// set throws a switch as an admin does.
func (s shelf) set(t *testing.T, name switches.Name, on bool) SwitchSet {
	t.Helper()
	set, err := SetSwitch(t.Context(), s.db, name, on, catalog.AdminToken, "our proxy answers in their place")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// against are the ends of calls that speak against a service that was asked.
func against() (ends []call.Row) {
	for _, row := range call.Rows() {
		if effects[row.Reason].starts || row.Reason == call.RejectedByService {
			ends = append(ends, row)
		}
	}
	return ends
}

// What each of them does without the switch is in the table of effects, and in the tests of the holder.
func TestSuspension_NoOutcomeMovesAnythingThenOrLater(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.set(t, suspension, true)
	paid := 0
	for _, row := range against() {
		for i, from := range call.Origins() {
			d := s.asked(t).end(row.Reason, "").from(from).of(byte(i + 1))
			d.RetryAfter = 10 * time.Minute
			s.record(t, d)
			if r, err := Lookup(t.Context(), s.db, d.Call); err != nil || r.Party != row.Party || r.Outcome != row.Outcome {
				t.Errorf("%s from %s is told as %s by %s, %v; want %s by %s", row.Reason, from, r.Outcome, r.Party, err, row.Outcome, row.Party)
			}
			paid++
			trial := s.trial(t).end(row.Reason, "").from(from)
			s.record(t, trial)
		}
	}
	if paid < 40 {
		t.Fatalf("only %d calls", paid)
	}
	s.want(t, "while strikes are suspended", world{Deliveries: 2 * paid, Refunds: paid, Jobs: paid})
	if s.holds(t) {
		t.Error("it is held while strikes are suspended")
	}
	s.set(t, suspension, false)
	pgtest.Shift(t, s.db, rest)
	if s.holds(t) {
		t.Error("it is held for what was recorded while strikes were suspended")
	}
	for n := 1; n < policy.Limit; n++ {
		s.fail(t)
		pgtest.Shift(t, s.db, rest)
	}
	n := policy.Limit - 1
	s.want(t, "after one failure less than delists", world{Deliveries: 2*paid + n, OpenStrikes: n, Evidence: n, Cooldowns: 1, Refunds: paid + n, Jobs: paid + n})
	s.fail(t)
	if got := s.world(t).Service; got != catalog.Delisted {
		t.Errorf("after as many failures as delist: it is %s", got)
	}
}

func TestSuspension_ASuccessStillClears(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	pgtest.Shift(t, s.db, rest)
	s.set(t, suspension, true)
	s.record(t, s.asked(t).served())
	s.want(t, "after a success", world{Deliveries: 2, ClearedStrikes: 1, Evidence: 1, Cooldowns: 1, Refunds: 1, Jobs: 1})
}

// A failure that joined its strike could bring the network that is missing, so that a service would be delisted by it.
func TestSuspension_AFailureJoinsNoStrikeThatIsOpen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	underWay := s.asked(t).failed()
	s.fail(t)
	s.set(t, suspension, true)
	s.record(t, underWay)
	s.want(t, "after both", world{Deliveries: 2, OpenStrikes: 1, Evidence: 1, Cooldowns: 1, Refunds: 2, Jobs: 2})
}

// Strikes that are voided take back a rest that nothing else needs.
func TestSuspension_WhatFailedMeanwhileKeepsUpNoRest(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	underWay := s.asked(t).end(call.UpstreamThrottled, "status 429")
	s.fail(t)
	s.set(t, suspension, true)
	s.record(t, underWay)
	queue, err := s.recorder.StrikesOfAll(t.Context(), 0, 10)
	if err != nil || len(queue.Strikes) != 1 {
		t.Fatalf("%+v, %v", queue, err)
	}
	if _, err := NewReview(s.db, policy).Void(t.Context(), queue.Strikes[0].ID, catalog.AdminToken, "it was our proxy"); err != nil {
		t.Fatal(err)
	}
	if left := s.rests(t); left != 0 {
		t.Errorf("the service rests for %s", left)
	}
}

func TestSuspension_FactsFromBeforeHoldOnceItIsOver(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 20, 3)
	s.set(t, suspension, true)
	if s.holds(t) {
		t.Error("held while strikes are suspended")
	}
	if err := NewHolder(s.db, HoldingRule).hold(t.Context(), s.service.ID); err != nil || s.world(t).Service != catalog.Listed {
		t.Errorf("by a replica that has read its facts before: %s, %v", s.world(t).Service, err)
	}
	s.set(t, suspension, false)
	if !s.holds(t) {
		t.Error("not held for what was recorded before")
	}
}

func TestSuspension_ASilentServiceIsHeldForWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.round(t, mute, nil)
	s.set(t, suspension, true)
	for range 2 * shortRounds.Checks {
		s.round(t, mute, nil)
	}
	s.want(t, "while strikes are suspended", world{})
	s.set(t, suspension, false)
	for range int(shortRounds.After/shortRounds.Every) - 1 {
		s.round(t, mute, nil)
		s.want(t, "after some rounds since", world{})
	}
	s.round(t, mute, nil)
	s.want(t, "when it has been silent for long enough since", world{Service: catalog.Held})
}

// Every failure saw the switch one way, and was recorded whole by that: it is evidence, or it is marked.
func TestSuspension_FailuresThatRaceWithItAreEvidenceOrMarked(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	var (
		wg  sync.WaitGroup
		all []Delivery
	)
	for range 40 {
		all = append(all, s.asked(t).failed())
	}
	replicas := []*Recorder{s.recorder, s.counting(s.recorder.jobs, policy, rest)}
	wg.Go(func() {
		for n := range 20 {
			if _, err := SetSwitch(t.Context(), s.db, suspension, n%2 == 0, catalog.AdminToken, "back and forth"); err != nil {
				t.Error(err)
			}
		}
	})
	for n, part := range slices.Collect(slices.Chunk(all, len(all)/4)) {
		wg.Go(func() {
			for _, d := range part {
				if err := replicas[n%2].Record(t.Context(), d); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var recorded, torn int
	const tornSQL = `
SELECT count(*), count(*) FILTER (WHERE d.suspended = (sd.delivery_id IS NOT NULL)) FROM deliveries d LEFT JOIN strike_deliveries sd ON sd.delivery_id = d.id`
	if err := s.db.QueryRow(t.Context(), tornSQL).Scan(&recorded, &torn); err != nil || recorded != len(all) || torn != 0 {
		t.Errorf("of %d failures %d are both or neither, %v", recorded, torn, err)
	}
	// Once it is set, whoever begins to record is bound by it.
	s.set(t, suspension, true)
	d := s.trial(t).failed()
	for _, r := range replicas {
		d.ID, d.Call = uuid.Must(uuid.NewV7()), call.NewID()
		if written, err := r.end(t.Context(), d); err != nil || !written.Suspended {
			t.Errorf("recorded after it was set: %+v, %v", written, err)
		}
	}
}

func TestSuspension_TheMarkOfADeliveryStays(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	if _, err := s.db.Exec(t.Context(), `UPDATE deliveries SET suspended = true`); err == nil {
		t.Error("what was recorded can be marked afterwards")
	}
}

func TestSetSwitch_KeepsWhoWhyAndWhatWasBefore(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	stop := switches.Name{Kind: switches.Stop402, Subject: network}
	on := s.set(t, stop, true)
	pgtest.Shift(t, s.db, time.Hour)
	off := s.set(t, stop, false)
	for name, tt := range map[string]struct {
		set           SwitchSet
		action        audit.Action
		on            bool
		before, after string
	}{
		"on": {on, audit.SwitchedOn, true, `{"on":false,"set_by":null,"since":null}`, `{"on":true,"set_by":"admin token","since":"2026-01-02T03:04:05Z"}`},
		"off": {off, audit.SwitchedOff, false, `{"on":true,"set_by":"admin token","since":"2026-01-02T03:04:05Z"}`,
			`{"on":false,"set_by":"admin token","since":"2026-01-02T04:04:05Z"}`},
	} {
		e := tt.set.Entry
		if tt.set.Switch.On != tt.on || e.Action != tt.action || e.Subject != audit.Switch("stop_402 "+network) || e.Reason != "our proxy answers in their place" ||
			string(e.Before) != tt.before || string(e.After) != tt.after {
			t.Errorf("%s: %+v with %s and %s", name, tt.set, e.Before, e.After)
		}
	}
	all, err := switches.Store{}.All(t.Context(), s.db)
	if err != nil || !slices.Equal(all, []switches.Switch{off.Switch}) {
		t.Errorf("kept are %+v, %v; want %+v", all, err, off.Switch)
	}
}

func TestSetSwitch_OneThatStandsSoAlreadyIsAConflict(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	conflict := func(when string, on bool, want string) {
		t.Helper()
		_, err := SetSwitch(t.Context(), s.db, suspension, on, catalog.AdminToken, "once more")
		if no, ok := errors.AsType[*refusal.Error](err); !ok || no.Reason != call.Conflict || !strings.Contains(no.Detail, want) {
			t.Errorf("%s: %v, want a conflict that says %q", when, err, want)
		}
	}
	conflict("never set", false, "suspend_strikes is off already: nobody has ever set it")
	s.set(t, suspension, true)
	conflict("on", true, "suspend_strikes is on already, by admin token at 2026-01-02 03:04:05 UTC: our proxy answers in their place")
	s.set(t, suspension, false)
	conflict("off", false, "suspend_strikes is off already, by admin token")
	if entries, _, _, err := (audit.Store{}).List(t.Context(), s.db, uuid.UUID{}, 10, ""); err != nil || len(entries) != 2 {
		t.Errorf("%d entries in the audit, %v; want 2", len(entries), err)
	}
}

func TestSetSwitch_OfManyAtOnceOneSetsIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, on := range []bool{true, false} {
		var (
			wg       sync.WaitGroup
			mu       sync.Mutex
			set, not int
		)
		for range 8 {
			wg.Go(func() {
				_, err := SetSwitch(t.Context(), s.db, suspension, on, catalog.AdminToken, "all at once")
				no, refused := errors.AsType[*refusal.Error](err)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					set++
				case refused && no.Reason == call.Conflict && strings.Contains(no.Detail, "by admin token"):
					not++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if set != 1 || not != 7 {
			t.Errorf("%d set it %s, %d were told that it is", set, onOff(on), not)
		}
	}
}
