package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/delivery"
	"market/internal/postgres/pgtest"
)

// picky serves {"n":1} and refuses every other number, which gives the caller its money back and moves no strike.
func picky(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, 64)
	n, _ := r.Body.Read(body)
	if strings.TrimSpace(string(body[:n])) != `{"n":1}` {
		http.Error(w, "not this one", http.StatusUnprocessableEntity)
		return
	}
	apptest.Works(w, r)
}

// deafSender loses refunds on their way.
func deafSender() app.Option {
	return app.WithSender(func(_ string, engine delivery.Settler) delivery.Settler {
		f := &faulty{}
		f.set(deaf)
		return &faultyEngine{faulty: f, engine: engine}
	})
}

// The restore drill. A backup is made, calls go on, the backup is restored, and every payment since is presented again.
func TestRestore_NothingIsDeliveredOrRefundedTwice(t *testing.T) {
	t.Parallel()
	const calls, refused = 50, 10
	before := apptest.StartWith(t, apptest.Setup{Burst: 900, Options: []app.Option{deafSender()}})
	s := before.List(t, "restored", picky, nil)
	ask, refusable := apptest.Ask(s.URL), apptest.Ask(s.URL).With(`{"n":2}`)
	terms := before.Challenge(t, ask)
	payer := before.Payer(t, (calls+10)*apptest.PriceUnits)
	known := before.SignFor(t, payer, terms, 900)
	if a := before.Send(t, ask, known); a.Status != http.StatusOK {
		t.Fatalf("before the backup: %d %s", a.Status, a.Body)
	}
	// Owed in the backup, and paid after it.
	owed := before.Send(t, refusable, before.SignFor(t, payer, terms, 900))
	expect(t, "before the backup", owed, http.StatusUnprocessableEntity, "rejected_by_service")
	apptest.Eventually(t, "the refund is signed", func() bool { return before.Books(t, owed.Call()).Refund == "sent" })
	before.Stop(t)
	backup := pgtest.Copy(t, before.DatabaseURL())

	lived := before.On(t, before.DatabaseURL())
	var (
		headers [calls]string
		asks    [calls]apptest.Asking
		paying  errgroup.Group
	)
	paying.SetLimit(10)
	for i := range calls {
		headers[i], asks[i] = lived.SignFor(t, payer, terms, 900), ask
		if i < refused {
			asks[i] = refusable
		}
		paying.Go(func() error {
			if a := lived.Send(t, lived.At(t, asks[i]), headers[i]); a.Status != http.StatusOK && a.Code() != "rejected_by_service" {
				t.Errorf("a call before the restore: %d %s", a.Status, a.Body)
			}
			return nil
		})
	}
	_ = paying.Wait()
	apptest.Eventually(t, "every refund is confirmed", func() bool { return lived.CountRefunds(t, "confirmed") == refused+1 })
	lived.Stop(t)
	asked := s.Asked()
	head, err := before.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	restored := before.On(t, backup, "MARKET_RESTORED_AT="+time.Unix(int64(head.Time), 0).UTC().Format(time.RFC3339))
	restored.AwaitBooks(t, owed.Call(), apptest.Books{State: "refused", Payment: "final", Outcome: "refused", Reason: "rejected_by_service", Refund: "confirmed"})
	for range 2 {
		for i := range calls {
			paying.Go(func() error {
				a := restored.Send(t, restored.At(t, asks[i]), headers[i])
				if a.Status != http.StatusConflict || a.Code() != "needs_review" || a.JSON["charged"] != "pending" || a.Call() == "" {
					t.Errorf("a payment that the backup does not know: %d %s", a.Status, a.Body)
				}
				return nil
			})
		}
		_ = paying.Wait()
		restored.Shift(t, pastGrace)
		if err := restored.App.SweepOnce(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := restored.Count(t, "settled"); got != calls {
		t.Errorf("%d calls wait for their review, want %d", got, calls)
	}
	if a := restored.Send(t, restored.At(t, ask), known); a.Code() == "needs_review" || a.Call() == "" {
		t.Errorf("a payment that the backup knows: %d %s", a.Status, a.Body)
	}
	if s.Asked() != asked {
		t.Errorf("after the restore the service was asked %d times", s.Asked()-asked)
	}
	wantMoved(t, restored, calls+2, refused+1)
	if a := restored.Send(t, restored.At(t, ask), restored.Sign(t, payer, terms)); a.Status != http.StatusOK {
		t.Errorf("a new payment: %d %s", a.Status, a.Body)
	}

	// An admin ends what waits. What was given back before the restore is found on the chain, and sent no second time; of the others one is, once.
	review := func(n int, decision string, want int) (call string) {
		t.Helper()
		call = restored.Send(t, restored.At(t, asks[n]), headers[n]).Call()
		status, said := restored.Admin(t, http.MethodPost, "/api/v1/admin/reviews/"+call+"/"+decision, map[string]string{"reason": "as the log says"})
		if status != want {
			t.Errorf("%s of call %d: %d %v, want %d", decision, n, status, said, want)
		}
		return call
	}
	const backBefore, servedBefore, again = 0, calls - 1, calls - 2
	refunded := apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "interrupted", Refund: "confirmed"}
	review(backBefore, "serve", http.StatusConflict)
	restored.AwaitBooks(t, review(backBefore, "refund", http.StatusOK), refunded)
	wantMoved(t, restored, calls+3, refused+1)
	restored.AwaitBooks(t, review(servedBefore, "refund", http.StatusOK), refunded)
	review(servedBefore, "refund", http.StatusConflict)
	wantMoved(t, restored, calls+3, refused+2)
	open := review(again, "serve", http.StatusOK)
	// By now the payment is public: it is served to whoever proves to be its caller, and given back where nobody does.
	if a := restored.Send(t, restored.At(t, asks[again]), headers[again]); a.Status != http.StatusConflict || a.Code() != "proof_required" {
		t.Errorf("a call that may be served after all, to somebody who proves nothing: %d %s", a.Status, a.Body)
	}
	restored.Shift(t, pastGrace)
	restored.AwaitBooks(t, open, refunded)
	wantMoved(t, restored, calls+3, refused+3)
}

// The treasury's key is replaced while it owes refunds. What a treasury received it gives back, once, whoever of the two is in use.
func TestKeyRotation_EveryTreasuryGivesBackWhatItReceived(t *testing.T) {
	t.Parallel()
	const calls = 5
	old := apptest.StartWith(t, apptest.Setup{Burst: 900, Options: []app.Option{deafSender()}})
	s := old.List(t, "rotated", picky, nil)
	refusable := apptest.Ask(s.URL).With(`{"n":2}`)
	terms := old.Challenge(t, refusable)
	payer := old.Payer(t, 2*calls*apptest.PriceUnits)
	for range calls {
		expect(t, "before the rotation", old.Pay(t, payer, terms, refusable), http.StatusUnprocessableEntity, "rejected_by_service")
	}
	apptest.Eventually(t, "every refund is signed", func() bool { return old.CountRefunds(t, "sent") == calls })
	old.Stop(t)

	next, _ := apptest.NewKey(t)
	alone := old.On(t, old.DatabaseURL(), "MARKET_TREASURY_KEY="+next)
	apptest.Eventually(t, "nobody signs for the old treasury", func() bool { return alone.CountRefunds(t, "parked") == calls })
	alone.Stop(t)

	both := old.On(t, old.DatabaseURL(), "MARKET_TREASURY_KEY="+next, "MARKET_TREASURY_RETIRED_KEYS="+old.Env("MARKET_TREASURY_KEY"))
	terms = both.Challenge(t, both.At(t, refusable))
	if terms.Accepts[0].PayTo != both.Treasury || both.Treasury == old.Treasury {
		t.Fatalf("payments go to %s, want them at %s, which is not %s", terms.Accepts[0].PayTo, both.Treasury, old.Treasury)
	}
	for range calls {
		expect(t, "after the rotation", both.Pay(t, payer, terms, both.At(t, refusable)), http.StatusUnprocessableEntity, "rejected_by_service")
	}
	both.Shift(t, 2*time.Minute) // past the pause of what is parked
	apptest.Eventually(t, "every refund is confirmed", func() bool { return both.CountRefunds(t, "confirmed") == 2*calls })
	for name, w := range map[string]*apptest.World{"the old treasury": old, "the new one": both} {
		in, out := both.Transfers(t, w.Treasury)
		if len(in) != calls || len(out) != calls {
			t.Errorf("%s received %d payments and sent %d refunds, want %d of each", name, len(in), len(out), calls)
		}
	}
	if got := both.Balance(t, payer.Address()); got != 2*calls*apptest.PriceUnits {
		t.Errorf("the payer has %d units, want all of its money back", got)
	}
}
