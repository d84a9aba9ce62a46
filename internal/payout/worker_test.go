package payout

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/chain"
	"market/internal/postgres/pgtest"
	"market/internal/source"
)

func TestWorker_WritesWhatItSignedBeforeItSendsItAndConfirmsAtTheFinalDepth(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 2)
	f := newFakeChain()
	w := f.worker(t, s)
	f.settle = func(_ context.Context, sent chain.Signed) chain.Settlement {
		if got, _ := s.find(t, p.ID); got.State != StateSent || !got.Signed || s.signed(t, p) != 1 {
			t.Errorf("while it is sent the payout is %s with %d signatures; want sent, with one", got.State, s.signed(t, p))
		}
		f.used, f.paid = true, &sent
		return chain.Settlement{Status: chain.StatusSettled, Proof: payoutProof}
	}
	mustRun(t, w, p)
	s.want(t, p, "after the send", StateSent, blockWait, 0)
	got := f.sent[0]
	if !sameTransfer(got.Expect(), p.expect()) || got.ValidAfter != 0 || got.ValidBefore != f.head.Time+validFor {
		t.Errorf("sent %+v, want the payout within %d s", got, validFor)
	}
	signer, err := chain.Recover(chain.NewDomain(network.Assets[0], network.ChainID).Digest(got.Authorization), got.Signature)
	if err != nil || signer != p.Treasury {
		t.Errorf("signed by %s, %v; want the treasury %s", signer, err, p.Treasury)
	}
	f.depth = network.Confirmations - 1
	mustRun(t, w, p)
	s.want(t, p, "one block short", StateSent, blockWait, 0)
	f.depth = network.Confirmations
	mustRun(t, w, p)
	if got, _ := s.find(t, p.ID); got.State != StateConfirmed || got.Transaction != payoutProof.Transaction {
		t.Errorf("payout = %+v, want it confirmed by %s", got, payoutProof.Transaction)
	}
	reads := f.reads
	mustRun(t, w, p)
	if f.reads != reads || len(f.sent) != 1 {
		t.Errorf("a confirmed payout is looked up again, or %d were sent", len(f.sent))
	}
}

// B116 in spirit: a payout that is tried again is the same payout, and an answer that is unclear leaves it sent.
// A search is bounded in blocks, and a payout may wait for weeks until it is signed.
func TestWorker_APayoutThatWaitedLongIsLookedForFromWhereItWasSigned(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 2)
	f := newFakeChain()
	f.head.Number = 1_000_000
	w := f.worker(t, s)
	mustRun(t, w, p)
	mustRun(t, w, p)
	if want := f.head.Number - searchBefore; f.from != want {
		t.Errorf("looked for from block %d, want %d; its newest payment is of block %d", f.from, want, p.FromBlock)
	}
}

func TestWorker_SendsTheSameSignatureForAsLongAsItLives(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	f.settle = unclear
	w := f.worker(t, s)
	mustRun(t, w, p)
	s.want(t, p, "unclear", StateSent, blockWait, 0)
	first := f.sent[0]
	f.head.Time = first.ValidBefore - validMargin
	mustRun(t, w, p)
	if len(f.sent) != 2 || !sameSigned(f.sent[1], first) {
		t.Fatalf("with just enough life left %d were sent, want the first again", len(f.sent))
	}
	f.head.Time++ // too short to be sent, and nothing is proved
	f.lapsed = first.ValidBefore - 1
	mustRun(t, w, p)
	f.head.Time = first.ValidBefore + 1_000_000 // a clock proves nothing
	mustRun(t, w, p)
	if len(f.sent) != 2 || s.signed(t, p) != 1 {
		t.Fatalf("before its lapse is proved %d were sent and %d signed, want no other", len(f.sent), s.signed(t, p))
	}
	f.lapsed = first.ValidBefore
	mustRun(t, w, p)
	if len(f.sent) != 3 || s.signed(t, p) != 2 || f.sent[2].Nonce != first.Nonce || f.sent[2].ValidBefore != f.head.Time+validFor {
		t.Fatalf("after its lapse is proved %d were sent and %d signed, want another of the same nonce", len(f.sent), s.signed(t, p))
	}
}

// B118: a worker died after it had sent. The recovery query finds what it left, and the next one reads the chain before anything else.
func TestWorker_WhatADeadWorkerLeftIsFoundAndNeverSentTwice(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	died := errors.New("the process died")
	f.settle = func(_ context.Context, sent chain.Signed) chain.Settlement {
		f.used, f.paid = true, &sent
		panic(died)
	}
	due := func() int {
		t.Helper()
		ids, err := Store{}.TakeDue(t.Context(), s.db, dueMax)
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	if n := due(); n != 1 {
		t.Fatalf("%d are due when it is made, want 1", n)
	}
	func() {
		defer func() {
			if got := recover(); got != died { //nolint:errorlint // the value itself
				t.Errorf("recovered %v, want %v", got, died)
			}
		}()
		_ = run(t, f.worker(t, s), p)
	}()
	pgtest.Shift(t, s.db, lease-time.Microsecond)
	if n := due(); n != 0 {
		t.Errorf("%d are due while its lease runs, want none", n)
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	if n := due(); n != 1 {
		t.Fatalf("%d are due when the lease has run out, want the one that the dead worker left", n)
	}
	f.settle, f.depth = nil, network.Confirmations
	mustRun(t, f.worker(t, s), p)
	if got, _ := s.find(t, p.ID); got.State != StateConfirmed || len(f.sent) != 1 {
		t.Errorf("payout is %s, %d sent; want it confirmed, and one", got.State, len(f.sent))
	}
	if n := due(); n != 0 {
		t.Errorf("%d are due when it is confirmed, want none", n)
	}
}

// B118: whatever state a worker left, as long as it has not ended.
func TestStore_TakeDue_FindsEveryStateThatHasNotEnded(t *testing.T) {
	t.Parallel()
	for state, found := range map[State]bool{StateOwed: true, StateSent: true, StateParked: true, StateConfirmed: false, StateCancelled: false} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			s, p := owed(t, 1)
			if state == StateConfirmed {
				s.confirm(t, p)
			} else {
				s.exec(t, `UPDATE payouts SET state = $2, signed_at = CASE WHEN $2 = 'sent' THEN market_now() END WHERE id = $1`, p.ID, state)
			}
			due, err := Store{}.TakeDue(t.Context(), s.db, dueMax)
			if err != nil || (len(due) == 1) != found {
				t.Errorf("%d due, %v; found should be %v", len(due), err, found)
			}
		})
	}
}

func TestWorker_ManyOnOnePayoutMoveTheMoneyOnce(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	f.depth = network.Confirmations
	var (
		wg    sync.WaitGroup
		start = make(chan struct{})
	)
	for range 8 {
		w := f.worker(t, s)
		wg.Go(func() {
			<-start
			for range 3 {
				if err := run(t, w, p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	mustRun(t, f.worker(t, s), p)
	if got, _ := s.find(t, p.ID); got.State != StateConfirmed {
		t.Errorf("payout is %s (%s), want it confirmed", got.State, got.Why)
	}
	if n := s.signed(t, p); n != 1 {
		t.Errorf("%d signatures, want 1", n)
	}
}

// B119: what stands against it is read with the row locked, right before the send.
func TestWorker_WhatIsHeldOrStoppedIsNeitherSignedNorSent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ stop, resume string }{
		"all payouts are stopped": {`INSERT INTO switches (kind, subject, is_on, reason, by) VALUES ('stop_payouts', '', true, 'why', 'who')
				ON CONFLICT (kind, subject) DO UPDATE SET is_on = true`,
			`UPDATE switches SET is_on = false`},
		"it is held by an admin":   {`UPDATE payouts SET held = true`, `UPDATE payouts SET held = false`},
		"the account is suspended": {suspendSQL, relistSQL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := owed(t, 1)
			f := newFakeChain()
			w := f.worker(t, s)
			s.exec(t, tt.stop)
			mustRun(t, w, p)
			s.want(t, p, name, StateOwed, heldWait, 0)
			if len(f.sent) != 0 || s.signed(t, p) != 0 {
				t.Fatalf("%d sent, %d signed; want none", len(f.sent), s.signed(t, p))
			}
			s.exec(t, tt.resume)
			f.settle = unclear
			mustRun(t, w, p)
			s.want(t, p, "when it may go on", StateSent, blockWait, 0)
			s.exec(t, tt.stop)
			mustRun(t, w, p)
			if len(f.sent) != 1 {
				t.Errorf("%d sent while it is stopped again, want it not shown once more", len(f.sent))
			}
			f.head.Time, f.lapsed = f.sent[0].ValidBefore, f.sent[0].ValidBefore
			mustRun(t, w, p)
			s.want(t, p, "lapsed while it is stopped", StateOwed, heldWait, 0)
			if s.signed(t, p) != 1 {
				t.Errorf("%d signed, want no other", s.signed(t, p))
			}
		})
	}
}

const (
	suspendSQL = `UPDATE services SET state = 'suspended', state_cause = 'suspension', state_actor = 'admin', state_by = 'a test', state_reason = 'why'`
	relistSQL  = `UPDATE services SET state = 'listed', state_cause = 'relisting', state_actor = 'admin', state_by = 'a test', state_reason = 'why'`
)

// B119: an admin cancels in the moment in which a worker is about to send. Of the two one is first.
func TestWorker_OfACancelAndASendOneWins(t *testing.T) {
	t.Parallel()
	s := newShelf(t).paidTo(t, payee)
	for range 8 {
		s.earn(t, 1)
		p := s.make(t)
		f := newFakeChain()
		f.settle = unclear
		w := f.worker(t, s)
		var (
			wg        sync.WaitGroup
			cancelled error
			start     = make(chan struct{})
		)
		wg.Go(func() {
			<-start
			if err := run(t, w, p); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			<-start
			cancelled = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error { return Store{}.Cancel(t.Context(), tx, p.ID) })
		})
		close(start)
		wg.Wait()
		got, _ := s.find(t, p.ID)
		switch {
		case cancelled == nil && (got.State != StateCancelled || len(f.sent) != 0 || s.signed(t, p) != 0):
			t.Errorf("cancelled, and it is %s, %d sent", got.State, len(f.sent))
		case cancelled != nil && (!errors.Is(cancelled, ErrSigned) || got.State != StateSent || len(f.sent) != 1):
			t.Errorf("not cancelled (%v), and it is %s, %d sent", cancelled, got.State, len(f.sent))
		}
		if cancelled != nil {
			s.confirm(t, p)
		}
	}
}

func TestWorker_ANonceThatSomethingElseUsedIsParked(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	other := chain.Signed{Asset: p.Asset, Authorization: p.authorization(common.Address{9}, 1)}
	f.used, f.paid = true, &other
	mustRun(t, f.worker(t, s), p)
	s.want(t, p, "nonce used", StateParked, parkedWait, 0)
	if len(f.sent) != 0 {
		t.Errorf("%d sent, want none", len(f.sent))
	}
}

// B121: what the token refuses waits for minutes, and a provider is paid by giving another address once what was signed has lapsed.
func TestWorker_WhatTheTokenRefusesIsParkedAndPaidToTheNextAddress(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	w := f.worker(t, s)
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusReleased, Why: "insufficient_funds", PayerFault: true}
	}
	mustRun(t, w, p)
	s.want(t, p, "refused", StateParked, parkedWait, 0)
	next := common.Address{7}
	s.setAddress(t, next)
	mustRun(t, w, p)
	if got := f.sent[1]; got.To != payee {
		t.Errorf("before the lapse it is shown to %s, want the same signature", got.To)
	}
	pgtest.Shift(t, s.db, addressWait)
	f.head.Time, f.lapsed, f.settle = f.sent[0].ValidBefore, f.sent[0].ValidBefore, nil
	mustRun(t, w, p)
	s.want(t, p, "to the next address", StateSent, blockWait, 0)
	f.depth = network.Confirmations
	mustRun(t, w, p)
	if got, _ := s.find(t, p.ID); got.State != StateConfirmed || got.Address != next {
		t.Errorf("payout is %s to %s, want it confirmed to %s", got.State, got.Address, next)
	}
}

func TestWorker_AKeyOrNetworkThatIsNotOursIsParked(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	w := f.worker(t, s)
	w.rails[network.ID] = Rail{Network: network, Node: f, Sender: f}
	mustRun(t, w, p)
	s.want(t, p, "no key", StateParked, parkedWait, 0)
	if f.reads != 0 || len(f.sent) != 0 {
		t.Errorf("%d reads, %d sent; want none", f.reads, len(f.sent))
	}
}

func TestWorker_TroubleOfTheRailBacksOffAndKeepsTheState(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	w := f.worker(t, s)
	f.broken = true
	for attempts, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if err := run(t, w, p); !errors.Is(err, errNode) {
			t.Fatalf("work says %v, want %v", err, errNode)
		}
		s.want(t, p, "node broken", StateOwed, wait*time.Second, attempts+1)
	}
	f.broken = false
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusUnknown, Why: "unexpected_settle_error", Err: errNode}
	}
	if err := run(t, w, p); !errors.Is(err, errNode) {
		t.Errorf("work says %v, want %v", err, errNode)
	}
	s.want(t, p, "nobody says that it is on its way", StateSent, retryMax, 9)
}

type outUnits struct{ until time.Time }

func (u outUnits) Reserve(context.Context) (context.Context, func(), error) {
	return nil, nil, &source.LimitError{Source: "facilitator/x", Until: u.until, Why: source.Guarded}
}

func TestWorker_WhatSendsTakesNoWorkItWaitsForThatAndIsDueWhenItDoes(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	w := f.worker(t, s)
	rail := w.rails[network.ID]
	rail.Units = outUnits{p.MadeAt.Add(time.Hour)}
	w.rails[network.ID] = rail
	mustRun(t, w, p)
	s.want(t, p, "out", StateOwed, time.Hour, 0)
	if n, err := (Store{}).Waiting(t.Context(), s.db, []string{network.ID}); err != nil || n != 1 || s.signed(t, p) != 0 {
		t.Errorf("%d wait, %v, %d signed; want 1 and none", n, err, s.signed(t, p))
	}
	if err := (Store{}).Resume(t.Context(), s.db, []string{network.ID}, []string{"facilitator/x"}); err != nil {
		t.Fatal(err)
	}
	s.want(t, p, "it works again", StateOwed, 0, 0)
}

func TestStore_Parked_CountsWhatDoesNotGetThroughAndNotWhatIsHeld(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	want := func(when string, n int) {
		t.Helper()
		all, err := Store{}.Parked(t.Context(), s.db)
		if err != nil || len(all) != n {
			t.Errorf("%s: %+v, %v; want %d networks", when, all, err, n)
		}
	}
	want("when it is made", 0)
	s.exec(t, `UPDATE payouts SET attempts = $2 WHERE id = $1`, p.ID, parkedAttempts-1)
	want("tried often", 0)
	s.exec(t, `UPDATE payouts SET attempts = $2 WHERE id = $1`, p.ID, parkedAttempts)
	want("tried too often", 1)
	s.exec(t, `UPDATE payouts SET state = 'parked', attempts = 0, why = 'blocked' WHERE id = $1`, p.ID)
	want("parked", 1)
	s.exec(t, `UPDATE payouts SET held = true WHERE id = $1`, p.ID)
	want("held", 0)
}

type fakeFunds struct{ short bool }

func (f *fakeFunds) Short(context.Context, common.Address, common.Address) (bool, error) {
	return f.short, nil
}

func TestWorker_NothingIsSignedWhileTheTreasuryHoldsLessThanItOwes(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f, funds := newFakeChain(), &fakeFunds{short: true}
	w := f.worker(t, s)
	rail := w.rails[network.ID]
	rail.Funds = funds
	w.rails[network.ID] = rail
	mustRun(t, w, p)
	s.want(t, p, "the treasury is short", StateParked, parkedWait, 0)
	if n := s.signed(t, p); n != 0 || len(f.sent) != 0 {
		t.Errorf("%d were signed and %d sent, want none", n, len(f.sent))
	}
	funds.short = false
	mustRun(t, w, p)
	s.want(t, p, "it holds enough", StateSent, blockWait, 0)
}

// The token refuses it again and again, and its provider hears of that once; and once that it has arrived.
func TestWorker_TellsTheProviderOnceThatAPayoutIsParkedAndOnceThatItHasArrived(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 1)
	f := newFakeChain()
	var told []State
	w := f.worker(t, s)
	w.tell = func(_ context.Context, _ pgx.Tx, p Payout) error {
		told = append(told, p.State)
		return nil
	}
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusReleased, Why: "insufficient_funds", PayerFault: true}
	}
	mustRun(t, w, p)
	f.head.Time, f.lapsed = f.sent[0].ValidBefore, f.sent[0].ValidBefore // another is signed, and refused
	mustRun(t, w, p)
	f.settle, f.depth = nil, network.Confirmations
	for range 3 {
		mustRun(t, w, p)
	}
	if want := []State{StateParked, StateConfirmed}; !slices.Equal(told, want) {
		t.Errorf("told is %v, want %v", told, want)
	}
}
