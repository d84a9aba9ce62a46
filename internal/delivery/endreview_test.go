package delivery

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/refund"
	"market/internal/refusal"
)

// restored is a path of a shelf whose backup was restored, with a chain on which every payment stands.
func (s shelf) restored(t *testing.T) (*Path, *fakeChain) {
	t.Helper()
	says := &fakeChain{depth: 2}
	p, rail, _ := s.sweeping(says, &sender{})
	p.Rails = []Rail{rail}
	return p, says
}

const (
	upForReviewSQL = `
UPDATE calls SET state = $2, review = true, lease_until = market_now(), look_at = market_now(), asked_at = CASE WHEN $2 = 'asked' THEN market_now() END,
       transaction = $3, log_index = CASE WHEN $3::bytea IS NULL THEN NULL ELSE 0 END, block_number = CASE WHEN $3::bytea IS NULL THEN NULL ELSE 9 END,
       block_hash = $3, payment_state = CASE WHEN $3::bytea IS NULL THEN NULL ELSE 'mined' END
 WHERE id = $1`
	stillInReviewSQL = `SELECT review FROM calls WHERE id = $1`
)

// upForReview is a call that a restore brought in doubt.
func (s shelf) upForReview(t *testing.T, in call.State) call.ID {
	t.Helper()
	c := s.claim(t)
	var transaction []byte
	if in == call.Settled || in == call.Asked {
		transaction = common.Hash{9}.Bytes()
	}
	if tag, err := s.db.Exec(t.Context(), upForReviewSQL, c.ID, in, transaction); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%v, %v", tag, err)
	}
	return c.ID
}

func (s shelf) inReview(t *testing.T, id call.ID) (review bool) {
	t.Helper()
	if err := s.db.QueryRow(t.Context(), stillInReviewSQL, id).Scan(&review); err != nil {
		t.Fatal(err)
	}
	return review
}

func conflictSaying(err error, words ...string) bool {
	no, refused := errors.AsType[*refusal.Error](err)
	if !refused || no.Reason != call.Conflict {
		return false
	}
	for _, w := range words {
		if !strings.Contains(no.Detail, w) {
			return false
		}
	}
	return true
}

func (s shelf) decisions(t *testing.T, id call.ID) []audit.Entry {
	t.Helper()
	all, _, _, err := audit.Store{}.List(t.Context(), s.db, uuid.UUID{}, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	var about []audit.Entry
	for _, e := range all {
		if e.Subject == audit.Call(id) || e.Subject == audit.Refund(id) {
			about = append(about, e)
		}
	}
	return about
}

func TestRefundReviewed_TheCallHasFailedByOurDoingAndIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, state := range []call.State{call.Settled, call.Asked} {
		s := newShelf(t)
		p, _ := s.restored(t)
		id := s.upForReview(t, state)
		r, err := p.RefundReviewed(t.Context(), id, catalog.AdminToken, "it was open at the backup")
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome != call.Failed || r.Reason != call.Interrupted || r.Party != call.Platform || r.Refund == nil || r.Refund.State != refund.StateOwed || r.Review {
			t.Errorf("%s: %+v, want it failed by the platform, its refund owed, and no review", state, r)
		}
		if said := s.decisions(t, id); len(said) != 1 || said[0].Action != audit.ReviewRefunded || said[0].Reason != "it was open at the backup" {
			t.Errorf("%s: the audit says %+v", state, said)
		}
		if all := s.rows(t); len(all) != 0 {
			t.Errorf("%s: %d strikes, want none", state, len(all))
		}
	}
}

// B115: an admin and another at the same instant owe one refund, and the second hears who was first. What the sweeper would do is the same.
func TestRefundReviewed_OfManyAtOnceOneDecidesAndTheOthersHearWho(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	p, _ := s.restored(t)
	id := s.upForReview(t, call.Settled)
	const admins = 8
	errs := make([]error, admins)
	var wg sync.WaitGroup
	for i := range admins {
		wg.Go(func() {
			by := catalog.Author{Actor: catalog.ActorAdmin, Name: "wallet " + string(rune('a'+i))}
			if i%2 == 0 {
				_, errs[i] = p.RefundReviewed(t.Context(), id, by, "because")
			} else {
				_, errs[i] = p.ServeReviewed(t.Context(), id, by, "because")
			}
		})
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case !conflictSaying(err, "by wallet ", "because"):
			t.Errorf("another hears %v, want a conflict that names the first", err)
		}
	}
	if said := s.decisions(t, id); done != 1 || len(said) != 1 {
		t.Errorf("%d decided, %d entries; want one of each", done, len(said))
	}
	var refunds int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM refunds`).Scan(&refunds); err != nil || refunds > 1 {
		t.Errorf("%d refunds, %v; want at most one", refunds, err)
	}
}

func TestServeReviewed_TheCallGoesOnForItsGraceAndIsRefundedAfterIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	p, _ := s.restored(t)
	p.Grace = 2 * time.Minute
	id := s.upForReview(t, call.Settled)
	pgtest.Shift(t, s.db, time.Hour)
	if _, err := p.ServeReviewed(t.Context(), id, catalog.AdminToken, "it was never asked"); err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		t.Helper()
		if err := p.SweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Shift(t, s.db, p.Grace-time.Microsecond)
	sweep()
	if state := s.state(t, id); state != call.Settled {
		t.Fatalf("within the grace it is %s, want settled", state)
	}
	if _, ours, err := takeOver(t.Context(), s.db, id, uuid.Must(uuid.NewV7()), time.Nanosecond); err != nil || !ours {
		t.Errorf("a retry takes it over: %v, %v; want that it does", ours, err)
	}
	pgtest.Shift(t, s.db, p.Grace+lookMax)
	sweep()
	if r, err := Lookup(t.Context(), s.db, id); err != nil || r.Reason != call.Interrupted || r.Refund == nil {
		t.Errorf("after the grace: %+v, %v; want it refunded", r, err)
	}
}

func TestServeReviewed_WhatTheChainShowsAsGivenBackIsNotServed(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	p, says := s.restored(t)
	id := s.upForReview(t, call.Settled)
	says.used = true // the nonce of its refund
	if _, err := p.ServeReviewed(t.Context(), id, catalog.AdminToken, "serve it"); !conflictSaying(err, "given back before the restore") {
		t.Errorf("%v, want a conflict", err)
	}
	if !s.inReview(t, id) || len(s.decisions(t, id)) != 0 {
		t.Error("the review has ended without a decision")
	}
	if r, err := p.RefundReviewed(t.Context(), id, catalog.AdminToken, "it was paid back"); err != nil || r.Refund == nil || r.Refund.State != refund.StateOwed {
		t.Errorf("%+v, %v; want the refund owed, which the worker confirms by its proof", r, err)
	}
}

// A node that has not come to the payment's block knows of no refund of it either.
func TestServeReviewed_ANodeThatIsBehindProvesNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	p, _ := s.restored(t)
	id := s.upForReview(t, call.Settled)
	if _, err := s.db.Exec(t.Context(), `UPDATE calls SET block_number = 10 WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ServeReviewed(t.Context(), id, catalog.AdminToken, "serve it"); !refusedFor(err, call.NotReady) {
		t.Errorf("%v, want not_ready", err)
	}
}

func TestReviewed_WhatCannotBeDecidedYetIsAConflict(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	p, _ := s.restored(t)
	asked := s.upForReview(t, call.Asked)
	if _, err := p.ServeReviewed(t.Context(), asked, catalog.AdminToken, "serve"); !conflictSaying(err, "asked already") {
		t.Errorf("an asked call: %v", err)
	}
	for _, state := range []call.State{call.Settling, call.Unknown} {
		id := s.upForReview(t, state)
		if _, err := p.RefundReviewed(t.Context(), id, catalog.AdminToken, "refund"); !conflictSaying(err, "the chain is being asked") {
			t.Errorf("%s: %v", state, err)
		}
	}
	if _, err := p.RefundReviewed(t.Context(), s.claim(t).ID, catalog.AdminToken, "refund"); !conflictSaying(err, "not up for review") {
		t.Errorf("no review: %v", err)
	}
	if _, err := p.RefundReviewed(t.Context(), call.NewID(), catalog.AdminToken, "refund"); !refusedFor(err, call.NotFound) {
		t.Errorf("no call: %v", err)
	}
	if all, err := InReview(t.Context(), s.db, call.ID{}, 100); err != nil || len(all) != 3 {
		t.Errorf("%d calls up for review, %v; want 3", len(all), err)
	}
}

// Whether a payment that was open at the backup moved at all is for the chain to say, before a person is asked anything.
func TestSweep_ACallUnderReviewIsAskedOfTheChainAndStaysUnderReview(t *testing.T) {
	t.Parallel()
	for _, state := range []call.State{call.Settling, call.Unknown} {
		s := newShelf(t)
		p, says := s.restored(t)
		paid := s.upForReview(t, state)
		if err := p.SweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.state(t, paid); got != call.Settled || !s.inReview(t, paid) {
			t.Errorf("%s, and on the chain: %s, in review %v; want it settled and in review", state, got, s.inReview(t, paid))
		}
		*says = fakeChain{lapsed: true}
		if _, err := s.db.Exec(t.Context(), `UPDATE calls SET look_at = 'infinity'`); err != nil {
			t.Fatal(err)
		}
		lapsed := s.upForReview(t, state)
		for range 2 {
			if err := p.SweepOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := Lookup(t.Context(), s.db, lapsed); err != nil || r.Outcome != call.Refused || r.Reason != call.SettleFailed || r.Refund != nil {
			t.Errorf("%s, and lapsed: %+v, %v; want it ended, and nothing owed", state, r, err)
		}
	}
}

func parkedRefund(t *testing.T, s shelf) call.ID {
	t.Helper()
	d := s.fail(t)
	if _, err := s.db.Exec(t.Context(), `UPDATE refunds SET state = 'parked', why = 'the token refused it', next_at = market_now() + interval '1 minute' WHERE call_id = $1`, d.Call); err != nil {
		t.Fatal(err)
	}
	return d.Call
}

// B115, of a refund that is there already: the second admin changes nothing, and hears of the first.
func TestRetryRefund_OfManyAtOnceOneDecidesAndTheOthersHearWho(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := parkedRefund(t, s)
	const admins = 8
	errs := make([]error, admins)
	var wg sync.WaitGroup
	for i := range admins {
		wg.Go(func() {
			_, errs[i] = RetryRefund(t.Context(), s.db, id, catalog.Author{Actor: catalog.ActorAdmin, Name: "wallet x"}, "the treasury was filled")
		})
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case !conflictSaying(err, "it is owed", "by wallet x", "the treasury was filled"):
			t.Errorf("another hears %v, want a conflict that names the first", err)
		}
	}
	said := s.decisions(t, id)
	if done != 1 || len(said) != 1 || said[0].Action != audit.RefundRetried || !strings.Contains(string(said[0].Before), `"parked"`) || !strings.Contains(string(said[0].After), `"owed"`) {
		t.Errorf("%d decided, and the audit says %+v; want one, from parked to owed", done, said)
	}
	if _, err := RetryRefund(t.Context(), s.db, call.NewID(), catalog.AdminToken, "what"); !refusedFor(err, call.NotFound) {
		t.Errorf("of no call: %v", err)
	}
}
