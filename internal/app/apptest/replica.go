package apptest

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"market/internal/app"
)

// Replica starts another program of the same fleet: it shares database, chain and keys, and callers see it under the same public URL. It has
// a door of its own. env comes on top of what the first one has.
func (w *World) Replica(t testing.TB, env ...string) *World {
	t.Helper()
	return w.ReplicaWith(t, nil, env...)
}

// ReplicaWith is Replica for one that is put together in another way than the first.
func (w *World) ReplicaWith(t testing.TB, options []app.Option, env ...string) *World {
	t.Helper()
	r := *w
	r.environ = slices.Concat(w.environ, []string{"MARKET_PUBLIC_URL=" + w.App.URL()}, env)
	r.options = slices.Concat(w.options, options)
	r.open(t)
	return &r
}

// Refuses starts another program of the fleet that is to refuse to start, and returns why it does.
func (w *World) Refuses(t testing.TB, env ...string) error {
	t.Helper()
	return w.RefusesWith(t, nil, env...)
}

// RefusesWith is Refuses for one that is put together in another way than the first.
func (w *World) RefusesWith(t testing.TB, options []app.Option, env ...string) error {
	t.Helper()
	r := *w
	r.options = slices.Concat(w.options, options)
	r.environ = slices.Concat(w.environ, []string{"MARKET_PUBLIC_URL=" + w.App.URL()}, env)
	return r.start(t)
}

// On starts another program on a database that the first one does not use, or uses no more: as after a restart, or a restore. It is put
// together as production is; everything else is as in Replica.
func (w *World) On(t testing.TB, databaseURL string, env ...string) *World {
	t.Helper()
	r := *w
	r.environ = slices.Concat(w.environ, []string{"MARKET_PUBLIC_URL=" + w.App.URL()}, env)
	r.options = nil
	r.on(t, databaseURL)
	r.open(t)
	return &r
}

// Env is what a variable of the program's environment says; the last one counts.
func (w *World) Env(name string) string {
	for _, line := range slices.Backward(w.environ) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// Stop stops the program as a signal does, and closes our own connections to its database.
func (w *World) Stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := w.App.Stop(ctx); err != nil {
		t.Fatalf("stop: %v", err)
	}
	w.DB.Close()
}

// DatabaseURL is where the books are.
func (w *World) DatabaseURL() string { return w.databaseURL }

// At is the asking at this program's own door.
func (w *World) At(t testing.TB, a Asking) Asking {
	t.Helper()
	u, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	a.URL = w.URL + u.RequestURI()
	return a
}
