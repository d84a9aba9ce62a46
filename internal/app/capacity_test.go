package app_test

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/postgres"
)

// A counter is a service that counts how many calls it has at once, and lets none of them end before it is told to.
type counter struct {
	*apptest.Service
	ask apptest.Asking

	mu        sync.Mutex
	now, most int
	release   chan struct{}
	open      bool // everybody passes
}

// newCounter lists one of a capacity. It holds nobody up any more when the test ends.
func newCounter(t *testing.T, w *apptest.World, slug string, declared map[string]any, endpoint ...map[string]any) *counter {
	t.Helper()
	c := &counter{release: make(chan struct{})}
	change := map[string]any{"timeout_ms": 60_000}
	for _, members := range endpoint {
		maps.Copy(change, members)
	}
	c.Service = w.ListWith(t, slug, c.work, change, capacityOf(declared))
	c.ask = apptest.Ask(c.URL)
	t.Cleanup(c.letAll)
	return c
}

func (c *counter) work(rw http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.now++
	c.most = max(c.most, c.now)
	release, open := c.release, c.open
	c.mu.Unlock()
	if !open {
		<-release
	}
	c.mu.Lock()
	c.now--
	c.mu.Unlock()
	apptest.Works(rw, r)
}

// counts returns how many calls it has now, and how many it had at most.
func (c *counter) counts() (now, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.most
}

// await waits until it has so many calls.
func (c *counter) await(t *testing.T, calls int) {
	t.Helper()
	apptest.Eventually(t, "the service has its calls", func() bool { now, _ := c.counts(); return now == calls })
}

// let ends the calls that it has; it then holds those that come after.
func (c *counter) let() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.release)
	c.release = make(chan struct{})
}

func (c *counter) letAll() {
	c.mu.Lock()
	c.open = true
	c.mu.Unlock()
	c.let()
}

func capacityOf(members map[string]any) map[string]any { return map[string]any{"capacity": members} }

// wantFull checks a refusal because a service has as much as it takes: nothing was claimed, and the caller is told when to come again.
func wantFull(t *testing.T, what string, a apptest.Answer, most int) {
	t.Helper()
	expect(t, what, a, http.StatusServiceUnavailable, "over_capacity")
	if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || wait < 1 || wait > most {
		t.Errorf("%s: Retry-After %q, want 1 to %d", what, a.Header.Get("Retry-After"), most)
	}
	if a.JSON["charged"] != false || a.JSON["party"] != "platform" || a.Header.Get("PAYMENT-REQUIRED") != "" || a.Call() != "" {
		t.Errorf("%s: call %q, terms %q, %s", what, a.Call(), a.Header.Get("PAYMENT-REQUIRED"), a.Body)
	}
}

// B67: our own limits are looked at before the payment is claimed, and so before it is settled.
func TestCapacity_TheReplicasTogetherAskAServiceForNoMoreAtOnceThanItDeclares(t *testing.T) {
	t.Parallel()
	const places, callers = 3, 12
	w := apptest.StartWith(t, apptest.Setup{Burst: 600})
	other := w.Replica(t)
	c := newCounter(t, w, "counted", map[string]any{"concurrency": places})
	doors := []apptest.Asking{c.ask, other.At(t, c.ask)}
	terms := w.Terms(t, c.Service, 120)
	for _, door := range doors {
		apptest.Eventually(t, door.URL+" has a place", func() bool { return w.Send(t, door, "").Status == http.StatusPaymentRequired })
	}
	payer := w.Payer(t, 3*callers*apptest.PriceUnits)

	// crowd sends payments at once, in turn through the doors, until each is answered or at the service. It returns those that were refused,
	// and what ends the others.
	crowd := func(doors []apptest.Asking) (full []string, let func()) {
		t.Helper()
		headers, answers := make([]string, callers), make([]apptest.Answer, callers)
		for i := range headers {
			headers[i] = w.Sign(t, payer, terms)
		}
		var (
			wg   sync.WaitGroup
			done [callers]atomic.Bool
		)
		for i, header := range headers {
			wg.Go(func() {
				answers[i] = w.Send(t, doors[i%len(doors)], header)
				done[i].Store(true)
			})
		}
		apptest.Eventually(t, "each is answered or at the service", func() bool {
			at, _ := c.counts()
			for i := range done {
				if done[i].Load() {
					at++
				}
			}
			return at == callers
		})
		for i := range done {
			if done[i].Load() {
				wantFull(t, "one too many", answers[i], 1)
				full = append(full, headers[i])
			}
		}
		for _, door := range doors {
			wantFull(t, "an unpaid request at a full service", w.Send(t, door, ""), 1)
		}
		in := make([]int, 0, places)
		for i := range done {
			if !done[i].Load() {
				in = append(in, i)
			}
		}
		if len(in) != places {
			t.Errorf("%d are at the service, want %d", len(in), places)
		}
		return full, func() {
			c.let()
			wg.Wait()
			for _, i := range in {
				if answers[i].Status != http.StatusOK {
					t.Errorf("one that was let in: %d %s", answers[i].Status, answers[i].Body)
				}
			}
		}
	}

	full, let := crowd(doors)
	if rows := w.Rows(t); rows.Calls != places {
		t.Errorf("%d payments are claimed, want %d", rows.Calls, places)
	}
	let()
	wantMoved(t, w, places, 0)

	// A payment that was refused is as good as before.
	done := make(chan apptest.Answer, 1)
	go func() { done <- w.Send(t, c.ask, full[0]) }()
	c.await(t, 1)
	c.let()
	if a := <-done; a.Status != http.StatusOK {
		t.Errorf("a refused payment again: %d %s", a.Status, a.Body)
	}

	// Whoever stays has the places of whoever went.
	if err := other.App.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped, err := postgres.MarketNow(t.Context(), w.DB)
	if err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "a heartbeat has told that the other is gone", func() bool {
		var gone bool
		const goneSQL = `SELECT count(*) = 1 AND min(heartbeat_at) > $1::timestamptz + interval '1 second' FROM replicas`
		if err := w.DB.QueryRow(t.Context(), goneSQL, stopped).Scan(&gone); err != nil {
			t.Fatal(err)
		}
		return gone
	})
	_, let = crowd(doors[:1])
	let()
	wantMoved(t, w, 2*places+1, 0)
	if _, most := c.counts(); most != places {
		t.Errorf("the service had %d calls at once, want %d", most, places)
	}
}

func TestCapacity_OfOnePlaceOneReplicaHasItAndTheOtherSaysToComeAgain(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	other := w.Replica(t)
	s := w.ListWith(t, "single", apptest.Works, nil, capacityOf(map[string]any{"concurrency": 1}))
	ask := apptest.Ask(s.URL)
	var here, there apptest.Answer
	apptest.Eventually(t, "one of the two has the place", func() bool {
		here, there = w.Send(t, ask, ""), w.Send(t, other.At(t, ask), "")
		return (here.Status == http.StatusPaymentRequired) != (there.Status == http.StatusPaymentRequired) && there.Status != http.StatusNotFound
	})
	if here.Status == http.StatusPaymentRequired {
		here, there = there, here
	}
	wantFull(t, "the one without a place", here, 1)
}

func TestCapacity_ARateIsKeptForPaidCallsAndTrialsTogether(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.ListWith(t, "paced", apptest.Works, map[string]any{"trial_calls_per_day": 5}, capacityOf(map[string]any{"requests_per_second": 0.1}))
	ask := apptest.Ask(s.URL)
	terms, payer := w.Challenge(t, ask), w.Payer(t, 10*apptest.PriceUnits)
	var (
		wg      sync.WaitGroup
		answers [3]apptest.Answer
	)
	for i := range answers {
		header := w.Sign(t, payer, terms)
		wg.Go(func() { answers[i] = w.Send(t, ask, header) })
	}
	wg.Wait()
	served := 0
	for _, a := range answers {
		if a.Status == http.StatusOK {
			served++
			continue
		}
		wantFull(t, "a payment too early", a, 10)
	}
	wantFull(t, "an unpaid request", w.Send(t, ask, ""), 10)
	wantFull(t, "a trial", w.Send(t, ask.Trial(), ""), 10)
	if served != 1 || s.Asked() != 1 {
		t.Errorf("%d were served and the service was asked %d times, want once within ten seconds", served, s.Asked())
	}
	wantMoved(t, w, 1, 0)
	if rows := w.Rows(t); rows.Calls != 1 || rows.Trials != 0 || rows.Refusals != 3 {
		t.Errorf("the database has %+v, want one call, no trial and three refusals: two payments and a trial", rows)
	}
}

// A gate never hides a known call.
func TestCapacity_AFullServiceHidesNoKnownCall(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	c := newCounter(t, w, "known", map[string]any{"concurrency": 1})
	ask := c.ask
	terms, payer := w.Challenge(t, ask), w.Payer(t, 10*apptest.PriceUnits)
	old, now := w.Sign(t, payer, terms), w.Sign(t, payer, terms)
	c.Do(apptest.Works)
	first := w.Send(t, ask, old)
	c.Do(c.work)
	answered := make(chan apptest.Answer, 1)
	go func() { answered <- w.Send(t, ask, now) }()
	c.await(t, 1)

	expect(t, "the payment that is under way", w.Send(t, ask, now), http.StatusConflict, "in_progress")
	expect(t, "its payment for something else", w.Send(t, ask.With(`{"n":2}`), now), http.StatusConflict, "payment_reused")
	if a := w.Send(t, ask, old); a.Status != http.StatusOK || a.Call() != first.Call() {
		t.Errorf("a payment that was served: %d %s", a.Status, a.Body)
	}
	wantFull(t, "a new payment", w.Pay(t, payer, terms, ask), 1)
	expect(t, "a payment with bad input", w.Pay(t, payer, terms, ask.With(`{"n":"x"}`)), http.StatusUnprocessableEntity, "input_invalid")
	c.let()
	if a := <-answered; a.Status != http.StatusOK {
		t.Errorf("the call that was under way: %d %s", a.Status, a.Body)
	}
	if w.Send(t, ask, "").Status != http.StatusPaymentRequired {
		t.Error("the service has room, and nobody is asked to pay")
	}
}

func TestCapacity_ATrialThatFindsNoPlaceIsNotUsedUp(t *testing.T) {
	t.Parallel()
	const callers = 10
	w := apptest.Start(t)
	c := newCounter(t, w, "tried", map[string]any{"concurrency": 1}, map[string]any{"trial_calls_per_day": callers})
	var (
		wg   sync.WaitGroup
		full atomic.Int32
	)
	for range callers {
		wg.Go(func() {
			a := w.Send(t, c.ask.Trial(), "")
			if a.Status != http.StatusOK {
				wantFull(t, "a trial too many at once", a, 1)
				full.Add(1)
			}
		})
	}
	apptest.Eventually(t, "one is at the service and the others are refused", func() bool {
		now, _ := c.counts()
		return now == 1 && full.Load() == callers-1
	})
	if rows := w.Rows(t); rows.Trials != 1 {
		t.Errorf("%d trials of the day are used, want one", rows.Trials)
	}
	c.let()
	wg.Wait()
}

func TestCapacity_AnEmptyWalletKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.ListWith(t, "empty-handed", apptest.Works, nil, capacityOf(map[string]any{"requests_per_second": 0.1}))
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	expect(t, "an empty wallet", w.Pay(t, w.Payer(t, 0), terms, ask), http.StatusPaymentRequired, "payer_unfunded")
	if a := w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, ask); a.Status != http.StatusOK {
		t.Errorf("one with money after it: %d %s", a.Status, a.Body)
	}
}

// A payer whose payment is settled and whose call nobody walks any more has a claim on an answer: it waits for a place.
func TestCapacity_ACallThatIsGoneOnWithWaitsForItsPlace(t *testing.T) {
	t.Parallel()
	f, option := newFaulty(t, hasty)
	w := apptest.StartWith(t, apptest.Setup{Burst: 600, Options: []app.Option{option}}, "MARKET_GRACE=1h")
	c := newCounter(t, w, "awaited", map[string]any{"concurrency": 1})
	ask := c.ask
	terms, payer := w.Challenge(t, ask), w.Payer(t, 2*apptest.PriceUnits)
	header := w.Sign(t, payer, terms)
	pending := w.Send(t, ask, header)
	wantPending(t, "the first request", pending)
	w.AwaitBooks(t, pending.Call(), apptest.Books{State: "settled", Payment: "final"})
	w.Shift(t, time.Minute) // beyond its lease

	f.set(honest)
	blocker, awaited := make(chan apptest.Answer, 1), make(chan apptest.Answer, 1)
	go func() { blocker <- w.Pay(t, payer, terms, ask) }()
	c.await(t, 1)
	again := w.Send(t, ask, header)
	wantPending(t, "no place became free", again)
	if again.Call() != pending.Call() {
		t.Errorf("it is call %s, want %s", again.Call(), pending.Call())
	}
	go func() { awaited <- w.Send(t, ask, header) }()
	c.let()
	if a := <-blocker; a.Status != http.StatusOK {
		t.Errorf("the call that had the place: %d %s", a.Status, a.Body)
	}
	c.await(t, 1)
	c.let()
	if a := <-awaited; a.Status != http.StatusOK || a.Call() != pending.Call() {
		t.Errorf("the call that waited: %d %s", a.Status, a.Body)
	}
	if _, most := c.counts(); most != 1 {
		t.Errorf("the service had %d calls at once", most)
	}
	wantMoved(t, w, 2, 0)
}
