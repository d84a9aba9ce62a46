package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/payment"
)

// outOfCredit is what a facilitator says whose customer has nothing left.
var outOfCredit = apptest.Replies(http.StatusPaymentRequired, `{"error":"out of credit"}`)

// newPrepaidWorld is newHostedWorld with facilitators that run out of a balance, and are asked again an hour later.
func newPrepaidWorld(t *testing.T, local bool, upstream http.HandlerFunc, all ...*apptest.Hosted) *hostedWorld {
	t.Helper()
	file := apptest.FacilitatorsFile(t, map[string]any{"metered": true, "runs_out": "prepaid", "budget_url": "https://facilitator.example/billing"}, local, all...)
	return newHostedWorldWith(t, apptest.Setup{Burst: 600}, []string{file}, local, upstream, all...)
}

// wantOut checks that a request met a source that is out: nothing was charged, and it is told until when, and not by whom.
func wantOut(t *testing.T, what string, a apptest.Answer, within time.Duration) {
	t.Helper()
	wait, _ := strconv.Atoi(a.Header.Get("Retry-After"))
	detail, _ := a.JSON["detail"].(string)
	if a.Status != http.StatusServiceUnavailable || a.Code() != "not_ready" || a.JSON["charged"] != false || a.JSON["party"] != "rail" ||
		a.Header.Get("PAYMENT-REQUIRED") != "" || wait < 1 || time.Duration(wait)*time.Second > within ||
		!strings.Contains(detail, "facilitator") || !strings.Contains(detail, "nothing was charged") || strings.Contains(string(a.Body), "hosted-a") {
		t.Errorf("%s: %d, Retry-After %d, %s; want 503 not_ready, uncharged, within %s, and no name", what, a.Status, wait, a.Body, within)
	}
}

// unitsUsed returns the units of all days.
func unitsUsed(t *testing.T, w *apptest.World, source string) (n int) {
	t.Helper()
	const usedSQL = `SELECT coalesce(sum(used), 0)::int FROM source_days WHERE source = $1`
	if err := w.DB.QueryRow(t.Context(), usedSQL, source).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// notices counts the notices of a kind and subject, and how many of them are about trouble that is not over.
func notices(t *testing.T, w *apptest.World, kind, subject string) (all, open int, text string) {
	t.Helper()
	const noticesSQL = `SELECT count(*)::int, count(*) FILTER (WHERE settled_at IS NULL AND calm_since IS NULL)::int, coalesce(max(text), '') FROM notices WHERE kind = $1 AND subject = $2`
	if err := w.DB.QueryRow(t.Context(), noticesSQL, kind, subject).Scan(&all, &open, &text); err != nil {
		t.Fatal(err)
	}
	return all, open, text
}

// sendAll sends every payment at once, in turn to each replica, and returns the answers.
func sendAll(t *testing.T, replicas []*apptest.World, ask apptest.Asking, headers []string) []apptest.Answer {
	t.Helper()
	answers := make([]apptest.Answer, len(headers))
	var wg sync.WaitGroup
	for i, header := range headers {
		w := replicas[i%len(replicas)]
		at := w.At(t, ask)
		wg.Go(func() { answers[i] = w.Send(t, at, header) })
	}
	wg.Wait()
	return answers
}

// The nine days in short. A facilitator says that we have no credit left: from then on nobody is asked to pay, whoever pays is told to come back and not
// charged, and the facilitator is asked once an hour, however many want it and however many replicas there are. Topped up, it is used within the hour.
func TestSources_AFacilitatorWithoutCreditIsAskedOnceAWindow(t *testing.T) {
	t.Parallel()
	const name = "facilitator/hosted-a"
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	w := newPrepaidWorld(t, false, apptest.Works, h)
	replicas := []*apptest.World{w.World, w.Replica(t)}
	const payers = 64
	payer := w.Payer(t, 2*payers*apptest.PriceUnits)
	terms := w.Challenge(t, w.ask)
	sign := func(n int) []string {
		headers := make([]string, n)
		for i := range headers {
			headers[i] = w.SignFor(t, payer, terms, 110)
		}
		return headers
	}
	if a := w.Pay(t, payer, terms, w.ask); a.Status != http.StatusOK {
		t.Fatalf("with credit: %d %s", a.Status, a.Body)
	}
	apptest.Eventually(t, "of two units the one for a refund is given back", func() bool { return unitsUsed(t, w.World, name) == 1 })

	h.Does(outOfCredit)
	for _, a := range sendAll(t, replicas, w.ask, sign(8)) {
		if a.Code() == "settlement_pending" {
			wantPending(t, "it has seen the payment", a) // these were under way together
			continue
		}
		wantOut(t, "the first hour", a, time.Hour)
	}
	asked := h.Asked.Load()
	apptest.Eventually(t, "nobody is asked to pay", func() bool {
		return w.Send(t, w.At(t, w.ask), "").Code() == "not_ready" && replicas[1].Send(t, replicas[1].At(t, w.ask), "").Code() == "not_ready"
	})
	wantOut(t, "unpaid", w.Send(t, w.ask, ""), time.Hour)
	for _, a := range sendAll(t, replicas, w.ask, sign(4)) {
		wantOut(t, "within the window", a, time.Hour)
	}
	if n := h.Asked.Load(); n != asked {
		t.Errorf("asked %d times within the window", n-asked)
	}
	w.Shift(t, time.Hour)
	apptest.Eventually(t, "the window has ended: people are asked to pay again", func() bool {
		return w.Send(t, w.At(t, w.ask), "").Status == http.StatusPaymentRequired && replicas[1].Send(t, replicas[1].At(t, w.ask), "").Status == http.StatusPaymentRequired
	})
	pending := 0
	for _, a := range sendAll(t, replicas, w.ask, sign(payers)) {
		if a.Code() == "settlement_pending" {
			pending++
			wantPending(t, "it tests", a)
			continue
		}
		wantOut(t, "while it is tested", a, time.Hour)
	}
	if asked++; h.Asked.Load() != asked || pending != 1 {
		t.Errorf("%d requesters at the end of the window: asked %d times too often, %d calls pending; want one test", payers, h.Asked.Load()-asked, pending)
	}
	all, open, text := notices(t, w.World, "source_out", name)
	if all != 1 || open != 1 || !strings.Contains(text, "facilitator hosted-a refuses us") || !strings.Contains(text, "503") ||
		!strings.Contains(text, "https://facilitator.example/billing") || !strings.Contains(text, "/admin/sources") || !strings.Contains(text, "try it again at") {
		t.Errorf("%d notices, %d open: %q", all, open, text)
	}

	h.Does(apptest.Settles)
	w.Shift(t, time.Hour)
	apptest.Eventually(t, "it is used again", func() bool {
		return w.Send(t, w.ask, "").Status == http.StatusPaymentRequired
	})
	if a := w.Pay(t, payer, terms, w.ask); a.Status != http.StatusOK {
		t.Errorf("topped up: %d %s", a.Status, a.Body)
	}
	w.Shift(t, 10*time.Minute)
	if a := w.Pay(t, payer, terms, w.ask); a.Status != http.StatusOK {
		t.Errorf("later: %d %s", a.Status, a.Body)
	}
	apptest.Eventually(t, "one recovery", func() bool {
		all, open, _ := notices(t, w.World, "source_out", name)
		return all == 1 && open == 0
	})
}

// Where a second facilitator is there, nobody notices that the first one is out: the very payment that finds it out is served.
func TestSources_AnotherFacilitatorTakesOver(t *testing.T) {
	t.Parallel()
	first, second := apptest.NewHosted(t, apptest.SupportsUs, outOfCredit), apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	w := newPrepaidWorld(t, false, apptest.Works, first, second)
	other := w.Replica(t)
	payer := w.Payer(t, 8*apptest.PriceUnits)
	terms := w.Challenge(t, w.ask)
	for _, at := range []*apptest.World{w.World, other, w.World, other} {
		if a := at.Pay(t, payer, terms, at.At(t, w.ask)); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	if first.Asked.Load() != 1 || second.Asked.Load() != 4 {
		t.Errorf("asked %d and %d times, want once and 4 times", first.Asked.Load(), second.Asked.Load())
	}
	w.service.Do(apptest.Fails)
	failed := w.Pay(t, payer, terms, w.ask)
	expect(t, "a failure", failed, http.StatusBadGateway, "upstream_5xx")
	if w.AwaitRefund(t, failed.Call()) == "" || first.Asked.Load() != 1 {
		t.Errorf("the refund goes through the second one too; the first was asked %d times", first.Asked.Load())
	}
	if _, open, text := notices(t, w.World, "source_out", "facilitator/hosted-a"); open != 1 || !strings.Contains(text, "go on through facilitator/hosted-b") {
		t.Errorf("%d open notices: %q", open, text)
	}
	wantMoved(t, w.World, 5, 1)
}

// Refunds are deferred and none fails: they wait together until the source may be asked again, one of them tests it, and they keep their attempts.
func TestSources_RefundsWaitForTheirFacilitatorAndAreSentWhenItWorksAgain(t *testing.T) {
	t.Parallel()
	const calls = 3
	h := apptest.NewHosted(t, apptest.SupportsUs, nil)
	var w *hostedWorld
	var refunds sync.Map // what was asked back, by nonce
	h.Does(func(s apptest.Settling) {
		if s.Signed.From != w.Treasury {
			apptest.Settles(s)
			return
		}
		refunds.Store(s.Signed.Nonce, nil)
		outOfCredit(s)
	})
	w = newPrepaidWorld(t, false, apptest.Fails, h)
	payer := w.Payer(t, calls*apptest.PriceUnits)
	terms := w.Challenge(t, w.ask)
	headers := make([]string, calls)
	for i := range headers {
		headers[i] = w.Sign(t, payer, terms)
	}
	var ids []string
	for _, a := range sendAll(t, []*apptest.World{w.World}, w.ask, headers) {
		if a.Refund("state") == "" {
			t.Fatalf("a call that failed, or met the rest of its service: %d %s", a.Status, a.Body)
		}
		ids = append(ids, a.Call())
	}
	const waitingSQL = `
SELECT count(*) FILTER (WHERE waits_for = 'facilitator/hosted-a' AND next_at > market_now())::int, sum(attempts)::int, count(*) FILTER (WHERE state = 'confirmed')::int FROM refunds`
	waiting := func() (wait, attempts, confirmed int) {
		if err := w.DB.QueryRow(t.Context(), waitingSQL).Scan(&wait, &attempts, &confirmed); err != nil {
			t.Fatal(err)
		}
		return wait, attempts, confirmed
	}
	apptest.Eventually(t, "all wait", func() bool { wait, _, _ := waiting(); return wait == calls })
	asked := h.Asked.Load()
	w.Shift(t, time.Hour)
	apptest.Eventually(t, "one has tested, and all wait again", func() bool { wait, _, _ := waiting(); return wait == calls && h.Asked.Load() > asked })
	if _, attempts, confirmed := waiting(); attempts != 0 || confirmed != 0 || h.Asked.Load() != asked+1 {
		t.Errorf("%d attempts, %d confirmed, asked %d times; want none, none, once", attempts, confirmed, h.Asked.Load()-asked)
	}
	record := w.Record(t, ids[0])
	if why := record.Refund("why"); !strings.Contains(why, "queued") || strings.Contains(string(record.Body), "hosted-a") {
		t.Errorf("its record says %s", record.Body)
	}
	h.Does(apptest.Settles)
	w.Shift(t, time.Hour)
	for _, id := range ids {
		w.AwaitRefund(t, id)
	}
	if got := w.Balance(t, payer.Address()); got != calls*apptest.PriceUnits {
		t.Errorf("the payer has %d units, want all back", got)
	}
	wantMoved(t, w.World, calls, calls)
}

// Our own guard: the units of a day end before the facilitator's credit does. What is under way is finished, and people are told until when.
func TestSources_OurOwnGuardStopsNewPaymentsUntilMidnight(t *testing.T) {
	t.Parallel()
	const name = "facilitator/hosted-a"
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	file := apptest.FacilitatorsFile(t, map[string]any{"metered": true, "runs_out": "prepaid", "guard": map[string]any{"floor": 20, "surge": 2}}, false, h)
	w := newHostedWorldWith(t, apptest.Setup{Burst: 600}, []string{file}, false, apptest.Works, h)
	w.ShiftInto(t, "day", 24*time.Hour, 12*time.Hour)
	const spent = 17
	if _, err := w.DB.Exec(t.Context(), `INSERT INTO source_days (source, day, used) VALUES ($1, (market_now() AT TIME ZONE 'UTC')::date, $2)`, name, spent); err != nil {
		t.Fatal(err)
	}
	payer := w.Payer(t, 8*apptest.PriceUnits)
	terms := w.Challenge(t, w.ask)
	for n := range 2 {
		if a := w.Pay(t, payer, terms, w.ask); a.Status != http.StatusOK {
			t.Fatalf("call %d: %d %s", n, a.Status, a.Body)
		}
		apptest.Eventually(t, "what it did not need is given back", func() bool { return unitsUsed(t, w.World, name) == spent+n+1 })
	}
	wantOut(t, "no room for a payment and its refund", w.Pay(t, payer, terms, w.ask), 12*time.Hour)
	wantOut(t, "unpaid", w.Send(t, w.ask, ""), 12*time.Hour)
	if _, open, text := notices(t, w.World, "guard_reached", name); open != 1 || !strings.Contains(text, "our own guard is reached at 20 units") || h.Asked.Load() != 2 {
		t.Errorf("%d open notices: %q; asked %d times", open, text, h.Asked.Load())
	}
	w.Shift(t, 12*time.Hour)
	apptest.Eventually(t, "the next day has units", func() bool { return w.Send(t, w.ask, "").Status == http.StatusPaymentRequired })
	if a := w.Pay(t, payer, terms, w.ask); a.Status != http.StatusOK {
		t.Errorf("the next day: %d %s", a.Status, a.Body)
	}
}

// Our own guard stops new payments, and not the way back of what was taken before it: the unit of each refund was set aside with its payment.
func TestSources_OurOwnGuardHoldsNoRefundUpOfWhatWasPaidBefore(t *testing.T) {
	t.Parallel()
	const name = "facilitator/hosted-a"
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	file := apptest.FacilitatorsFile(t, map[string]any{"metered": true, "runs_out": "prepaid", "guard": map[string]any{"floor": 20, "surge": 2}}, false, h)
	reached := make(chan struct{})
	w := newHostedWorldWith(t, apptest.Setup{Burst: 600}, []string{file}, false, func(answer http.ResponseWriter, r *http.Request) {
		<-reached
		apptest.Fails(answer, r)
	}, h)
	w.ShiftInto(t, "day", 24*time.Hour, 12*time.Hour)
	if _, err := w.DB.Exec(t.Context(), `INSERT INTO source_days (source, day, used) VALUES ($1, (market_now() AT TIME ZONE 'UTC')::date, 17)`, name); err != nil {
		t.Fatal(err)
	}
	payer := w.Payer(t, 2*apptest.PriceUnits)
	terms := w.Challenge(t, w.ask)
	paid := make(chan apptest.Answer, 1)
	header := w.Sign(t, payer, terms)
	go func() { paid <- w.Send(t, w.ask, header) }()
	apptest.Eventually(t, "the first is paid", func() bool { return h.Asked.Load() == 1 })
	wantOut(t, "the guard", w.Pay(t, payer, terms, w.ask), 12*time.Hour)
	close(reached)
	failed := <-paid
	expect(t, "a failure after the guard was reached", failed, http.StatusBadGateway, "upstream_5xx")
	w.AwaitRefund(t, failed.Call())
	if n := unitsUsed(t, w.World, name); n != 19 {
		t.Errorf("%d units are used, want those of the payment and of its refund", n)
	}
	if _, _, text := notices(t, w.World, "guard_reached", name); !strings.Contains(text, "refunds there go on") {
		t.Errorf("the notice says of refunds: %q", text)
	}
}

// A program that starts during an outage, or before its facilitator is there, starts: its pages are open, and it says what it waits for.
func TestSources_AStartDuringAnOutageStarts(t *testing.T) {
	t.Parallel()
	h := apptest.NewHosted(t, apptest.SupportsUs, outOfCredit)
	w := newPrepaidWorld(t, false, apptest.Works, h)
	wantPending(t, "it has seen the payment", w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask), w.ask))
	late := w.Replica(t)
	wantOut(t, "a replica that started during the outage", late.Send(t, late.At(t, w.ask), ""), time.Hour)
	if a := late.Send(t, apptest.Asking{Method: http.MethodGet, URL: late.URL + "/"}, ""); a.Status != http.StatusOK {
		t.Errorf("its pages: %d", a.Status)
	}
	h.Does(apptest.Settles)
	w.Shift(t, time.Hour)
	var terms payment.Required
	apptest.Eventually(t, "the window has ended", func() bool {
		a := late.Send(t, late.At(t, w.ask), "")
		if a.Status != http.StatusPaymentRequired {
			return false
		}
		var err error
		terms, err = payment.DecodeChallenge(a.Header.Get(payment.HeaderRequired))
		return err == nil
	})
	if a := late.Pay(t, w.Payer(t, apptest.PriceUnits), terms, late.At(t, w.ask)); a.Status != http.StatusOK || h.Asked.Load() != 2 {
		t.Errorf("topped up: %d %s, asked %d times", a.Status, a.Body, h.Asked.Load())
	}
}
