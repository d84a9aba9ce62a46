package replica

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/postgres/pgtest"
)

// A heartbeat says when the fleet was read, and never goes back; the terms of a process stand in its row.
func TestBeat_SaysWhenTheFleetWasReadAndOnWhichTerms(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	id, terms := uuid.Must(uuid.NewV7()), Terms{Budget: 200, Rate: 20, Burst: 10, Share: 2500}
	alive := func() (Replica, time.Time) {
		t.Helper()
		all, at, err := Store{}.Alive(t.Context(), db)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v are alive (%v), want one", all, err)
		}
		return all[0], at
	}
	if all, at, err := (Store{}).Alive(t.Context(), db); err != nil || len(all) != 0 || at.IsZero() {
		t.Fatalf("nobody runs: %v at %s (%v)", all, at, err)
	}
	beat := func(read time.Time) {
		t.Helper()
		if err := (Store{}).Beat(t.Context(), db, id, "127.0.0.1:1", terms, read); err != nil {
			t.Fatal(err)
		}
	}
	beat(time.Time{})
	first, read := alive()
	if first.Terms != terms || first.Beat.After(read) {
		t.Errorf("%+v, read at %s", first, read)
	}
	beat(read)
	beat(first.Beat)
	if got, _ := alive(); !got.Beat.Equal(read) {
		t.Errorf("the heartbeat is of %s, want of when the fleet was read: %s", got.Beat, read)
	}
}
