package postgres_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

func next(t *testing.T, calls <-chan string) string {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case c := <-calls:
		return c
	case <-timeout.C:
		t.Fatal("no call")
		return ""
	}
}

func notify(t *testing.T, db postgres.DB, channel string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), `SELECT pg_notify($1, '')`, channel); err != nil {
		t.Fatal(err)
	}
}

func TestWatch_CallsForEachChannelAtConnectOnNotificationsAndAfterALostConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)

	ctx, cancel := context.WithCancel(t.Context())
	calls, losses, returned := make(chan string), make(chan error, 10), make(chan struct{})
	go func() {
		defer close(returned)
		postgres.Watch(ctx, url, []string{"catalog", "Cool-downs"}, func(c string) { calls <- c }, func(err error) { losses <- err })
	}()

	wantBoth := func(when string) {
		t.Helper()
		if got := []string{next(t, calls), next(t, calls)}; !slices.Equal(got, []string{"catalog", "Cool-downs"}) {
			t.Fatalf("%s: %v, want each channel once", when, got)
		}
	}
	wantBoth("at connect")

	for _, channel := range []string{"Cool-downs", "catalog"} {
		notify(t, db, channel)
		if got := next(t, calls); got != channel {
			t.Errorf("notified %s, called %s", channel, got)
		}
	}
	notify(t, db, "cool-downs") // another channel: names are taken letter by letter
	notify(t, db, "catalog")
	if got := next(t, calls); got != "catalog" {
		t.Errorf("called %s for a channel that nobody watches", got)
	}

	const terminateSQL = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE application_name = 'market watch' AND datname = current_database()`
	var ended int
	if err := db.QueryRow(t.Context(), terminateSQL).Scan(&ended); err != nil || ended != 1 {
		t.Fatalf("ended %d connections, %v; want 1", ended, err)
	}
	wantBoth("after a lost connection")
	if err := <-losses; err == nil {
		t.Error("the loss was reported as nil")
	}

	cancel()
	<-returned
	if len(losses) != 0 {
		t.Errorf("an ended context was reported as a loss: %v", <-losses)
	}
}

func TestWatch_QueuedNotificationsOfAChannelAreOneCall(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ctx, cancel := context.WithCancel(t.Context())
	w := postgres.NewWatch(url, []string{"work", "end"})
	calls, release, returned := make(chan string), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(returned)
		w.Run(ctx, func(c string) { calls <- c; <-release }, nil)
	}()
	for range 2 {
		next(t, calls)
		release <- struct{}{}
	}

	notify(t, db, "work")
	next(t, calls) // this call goes on while the rest arrive
	const notifications = 50
	for range notifications {
		notify(t, db, "work")
	}
	notify(t, db, "end")
	for deadline := time.Now().Add(patience); !w.Marked("end"); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the last notification has not arrived")
		}
	}
	count := 0
	for release <- struct{}{}; next(t, calls) != "end"; release <- struct{}{} {
		count++
	}
	if count != 1 {
		t.Errorf("calls = %d for %d notifications, want them joined", count, notifications)
	}
	release <- struct{}{}
	cancel()
	<-returned
}

func TestWatch_AnIdleConnectionIsTriedAndKept(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ctx, cancel := context.WithCancel(t.Context())
	calls, losses, returned := make(chan string), make(chan error, 10), make(chan struct{})
	go func() {
		defer close(returned)
		postgres.WatchIdle(ctx, 5*time.Millisecond, url, []string{"catalog"}, func(c string) { calls <- c }, func(err error) { losses <- err })
	}()
	next(t, calls)

	// The server sees the checks: the connection's last statement stops being the LISTEN.
	const checkedSQL = `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
		WHERE application_name = 'market watch' AND datname = current_database() AND query NOT LIKE 'LISTEN%')`
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for checked := false; !checked; <-tick.C {
		if err := db.QueryRow(t.Context(), checkedSQL).Scan(&checked); err != nil {
			t.Fatal(err)
		}
	}
	notify(t, db, "catalog")
	if got := next(t, calls); got != "catalog" {
		t.Errorf("called %s", got)
	}
	cancel()
	<-returned
	if len(losses) != 0 {
		t.Errorf("lost an idle connection: %v", <-losses)
	}
}

func TestWatch_ReturnsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	called := false
	postgres.Watch(ctx, "postgres://nobody@127.0.0.1:1/none?sslmode=disable", []string{"catalog"},
		func(string) { called = true }, func(error) { cancel() })
	if called {
		t.Error("called without a connection")
	}
}
