package app_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
)

// Who sends one payment again and again would keep everybody else out if each took a place until it is known.
func TestCapacity_AKnownPaymentThatIsSentAgainTakesNoPlace(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	c := newCounter(t, w, "pestered", map[string]any{"concurrency": 2})
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Terms(t, c.Service, 120))
	first := make(chan apptest.Answer, 1)
	go func() { first <- w.Send(t, c.ask, header) }()
	c.await(t, 1)

	// A claim of the same payment would wait here, with its place.
	held, err := w.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := held.Exec(t.Context(), `SELECT 1 FROM calls FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	again := make(chan apptest.Answer, 1)
	go func() { again <- w.Send(t, c.ask, header) }()
	select {
	case a := <-again:
		expect(t, "the payment again", a, http.StatusConflict, "in_progress")
	case <-time.After(10 * time.Second):
		t.Error("the payment waits for a claim of its own")
	}
	if a := w.Send(t, c.ask, ""); a.Status != http.StatusPaymentRequired {
		t.Errorf("somebody else meanwhile: %d %s", a.Status, a.Body)
	}
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.letAll()
	if a := <-first; a.Status != http.StatusOK {
		t.Errorf("the first: %d %s", a.Status, a.Body)
	}
}

// A process that drains may do so for minutes, for the sake of streams that no capacity bounds.
func TestCapacity_OneThatStopsLeavesItsShareToTheOthersOnceItHasNoneOfIt(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	other := w.Replica(t)
	pieces := make(chan string)
	s := w.List(t, "lasting", apptest.Sends(pieces, false), streaming(nil))
	f, _ := payStream(t, w, s)
	pieces <- event
	f.Next(event)
	running := func() (n int) {
		if err := other.DB.QueryRow(t.Context(), `SELECT count(*) FROM replicas`).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	if n := running(); n != 2 {
		t.Errorf("%d processes run, want 2", n)
	}
	end := sync.OnceFunc(func() { close(pieces) })
	defer end() // else a stop would wait for it
	stopped := make(chan error, 1)
	go func() { stopped <- w.App.Stop(context.WithoutCancel(t.Context())) }()
	apptest.Eventually(t, "one process divides what services can take", func() bool { return running() == 1 })
	pieces <- event
	f.Next(event)
	end()
	if _, err := f.Rest(); err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
