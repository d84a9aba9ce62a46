package app_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
)

const (
	heldExposureSQL = `INSERT INTO exposures (network) VALUES ($1) ON CONFLICT (network) DO UPDATE SET network = excluded.network`
	weighingSQL     = `
SELECT coalesce(max(pid), 0) FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%exposures%' AND pid <> pg_backend_pid()`
)

// The process dies between the facilitator's answer and the commit on its word: nothing was written, the payment moves all the same, and its
// caller is served when it comes back. The transfer proves it by then, so nobody's word is needed.
func TestLater_ADeathBeforeTheCommitLeavesAPaymentThatIsFound(t *testing.T) {
	t.Parallel()
	w := newLaterFleet(t, burst, 2, 10, false, apptest.Works, apptest.NewHosted(t, apptest.SupportsUs, hurries))
	dies := w.Replica(t)
	apptest.Eventually(t, "the other replica knows the service", func() bool {
		return w.Send(t, dies.At(t, w.ask), "").Status == http.StatusPaymentRequired
	})
	held, err := w.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(t.Context()) }()
	if _, err := held.Exec(t.Context(), heldExposureSQL, devnet.NetworkID); err != nil {
		t.Fatal(err)
	}
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask))
	newest := w.SendAndLeave(t, dies.At(t, w.ask), header, w.weighing(t, dies))
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := newest()
	apptest.Eventually(t, "the payment is on the chain", func() bool {
		in, _ := w.Transfers(t, w.Treasury)
		return len(in) == 1
	})
	w.Shift(t, 40*time.Second) // past the lease
	var again apptest.Answer
	apptest.Eventually(t, "its caller is served", func() bool {
		again = w.Send(t, w.ask, header)
		return again.Status == http.StatusOK
	})
	if again.Call() != id || w.words(t) != 0 || w.service.Asked() != 1 {
		t.Errorf("served call %s, want %s; %d words, asked %d times", again.Call(), id, w.words(t), w.service.Asked())
	}
	w.AwaitBooks(t, id, apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	w.wantFigures(t, "in the end", 1, 0, 0)
	wantMoved(t, w.World, 1, 0)
}

// weighing kills a replica, with its connection, when it waits for the right to weigh a word, and is closed then.
func (w *hostedWorld) weighing(t *testing.T, dies *apptest.World) <-chan struct{} {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for pid := 0; pid == 0; {
			select {
			case <-t.Context().Done():
				return
			case <-tick.C:
			}
			if err := w.DB.QueryRow(t.Context(), weighingSQL).Scan(&pid); err != nil {
				t.Error(err)
				return
			}
			if pid == 0 {
				continue
			}
			dies.App.Kill()
			if _, err := w.DB.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, pid); err != nil {
				t.Error(err)
			}
		}
	}()
	return done
}

// The process dies while the service works for a payment that nobody has proved: nothing is given back before the proof, and nothing at all where
// none comes.
func TestLater_ADeathWhileTheServiceWorksWaitsForTheProof(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var let sync.Once
	h := apptest.NewHosted(t, apptest.SupportsUs, nil)
	hold := newHolder(t)
	w := newLaterFleet(t, burst, 2, 10, false, func(rw http.ResponseWriter, r *http.Request) {
		<-release
		apptest.Works(rw, r)
	}, h)
	t.Cleanup(func() { let.Do(func() { close(release) }) }) // before the service ends, which waits for its requests
	dies := w.Replica(t)
	apptest.Eventually(t, "the other replica knows the service", func() bool {
		return w.Send(t, dies.At(t, w.ask), "").Status == http.StatusPaymentRequired
	})
	good, bad := w.Payer(t, apptest.PriceUnits), w.Payer(t, apptest.PriceUnits)
	h.Does(func(s apptest.Settling) {
		switch s.Signed.From {
		case good.Address():
			hold.settles(s)
		case bad.Address():
			lies(s)
		default: // the treasury, which refunds
			apptest.Settles(s)
		}
	})
	terms := w.Challenge(t, w.ask)
	ids := map[common.Address]string{}
	for _, key := range []chain.Key{good, bad} {
		before := w.service.Asked()
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for w.service.Asked() == before {
				select {
				case <-t.Context().Done():
					return
				case <-tick.C:
				}
			}
		}()
		ids[key.Address()] = w.SendAndLeave(t, dies.At(t, w.ask), w.SignFor(t, key, terms, 60), asked)()
	}
	dies.App.Kill()
	let.Do(func() { close(release) })
	w.Shift(t, time.Minute) // past the leases
	for _, id := range ids {
		w.AwaitBooks(t, id, apptest.Books{State: "asked", Payment: "sent"})
	}
	w.wantFigures(t, "before anything is proved", 0, 2, 0)
	hold.letGo()
	w.Shift(t, 20*time.Second) // past the pause between two looks
	w.AwaitBooks(t, ids[good.Address()], apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "interrupted", Refund: "confirmed"})
	w.lapse(t)
	w.AwaitBooks(t, ids[bad.Address()], apptest.Books{State: "failed", Payment: "lost", Outcome: "failed", Reason: "settlement_lost"})
	w.wantFigures(t, "in the end", 1, 0, 0)
	wantMoved(t, w.World, 1, 1)
	if n := w.service.Asked(); n != 2 {
		t.Errorf("the service was asked %d times, want once a call", n)
	}
}

// What a facilitator said it had done, and has not, is done by another one, as long as the payment lives.
func TestLater_AnotherFacilitatorDoesWhatTheFirstOnlySaid(t *testing.T) {
	t.Parallel()
	h := apptest.NewHosted(t, apptest.SupportsUs, lies)
	w := newLaterWorld(t, burst, 10, true, apptest.Works, h)
	_, a := w.call(t)
	if a.Status != http.StatusOK || w.words(t) != 1 {
		t.Fatalf("the call: %d %s, %d words", a.Status, a.Body, w.words(t))
	}
	h.Close()
	w.Shift(t, time.Minute)
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	w.wantFigures(t, "in the end", 1, 0, 0)
	wantMoved(t, w.World, 1, 0)
}

// Where the service may not be asked, the money goes back once it is proved that it came.
func TestLater_ACallOfAServiceThatRestsIsRefundedOnceItsPaymentIsProved(t *testing.T) {
	t.Parallel()
	w, h, hold := newHeldWorld(t, 10, apptest.Works)
	s := w.List(t, "rests", apptest.Fails, map[string]any{"trial_calls_per_day": 5})
	ask := apptest.Ask(s.URL)
	header := w.SignFor(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, ask), 60)
	expect(t, "a trial", w.Send(t, ask.Trial(), ""), http.StatusBadGateway, "upstream_5xx")
	a := w.Send(t, ask, header)
	expect(t, "while it rests", a, http.StatusServiceUnavailable, "in_cooldown")
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "cooldown_refused", Payment: "sent", Outcome: "cooldown_refused", Reason: "in_cooldown", Refund: "owed"})
	w.wantFigures(t, "before it is proved", 0, 1, 0)
	h.Does(apptest.Settles)
	hold.letGo()
	w.AwaitRefund(t, a.Call())
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "cooldown_refused", Payment: "final", Outcome: "cooldown_refused", Reason: "in_cooldown", Refund: "confirmed"})
	w.wantFigures(t, "in the end", 1, 0, 0)
	wantMoved(t, w.World, 1, 1)
}

// Once it is proved, a payment that was believed is like any other: the chain may take it back, and it is sent again.
func TestLater_AProvedPaymentThatDropsOutComesBack(t *testing.T) {
	t.Parallel()
	w := newLaterWorld(t, apptest.Setup{Burst: 900, Confirmations: deep}, 10, false, apptest.Works, apptest.NewHosted(t, apptest.SupportsUs, hurries))
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask))
	a := w.Send(t, w.ask, header)
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "mined", Outcome: "served", Reason: "ok"})
	in, _ := w.Transfers(t, w.Treasury)
	old := in[0].Block
	if err := w.Chain.Reorg(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the payment is on the chain again", func() bool {
		in, _ := w.Transfers(t, w.Treasury)
		return len(in) == 1 && in[0].Block > old
	})
	if err := w.Chain.Mine(t.Context(), deep); err != nil {
		t.Fatal(err)
	}
	w.Shift(t, time.Minute)
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	w.wantFigures(t, "in the end", 1, 0, 0)
}
