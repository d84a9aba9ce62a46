package replica

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/postgres/pgtest"
)

func TestAlive_CountsWhoBeatWithinThreeBeats(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first, second := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	beat := func(id uuid.UUID) {
		if err := (Store{}).Beat(t.Context(), db, id, "127.0.0.1:1", Terms{}, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	alive := func() (ids []uuid.UUID) {
		rows, _, err := Store{}.Alive(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	beat(first)
	pgtest.Shift(t, db, 2*time.Second)
	beat(second)
	if got := alive(); len(got) != 2 {
		t.Fatalf("%v are alive, want both", got)
	}
	pgtest.Shift(t, db, time.Second)
	if got := alive(); len(got) != 1 || got[0] != second {
		t.Errorf("%v are alive, want the one that beat a second ago", got)
	}
	beat(first)
	if got := alive(); len(got) != 2 {
		t.Errorf("%v are alive, want both: the first beat again", got)
	}
	if err := (Store{}).Leave(t.Context(), db, second); err != nil {
		t.Fatal(err)
	}
	if got := alive(); len(got) != 1 || got[0] != first {
		t.Errorf("%v are alive, want the one that did not leave", got)
	}
}
