package refund

import (
	"testing"
	"time"

	"market/internal/call"
	"market/internal/postgres/pgtest"
	"market/internal/source"
)

func TestStore_Deferred_CountsWhatWaitsForASourceAndHowLong(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first := s.owe(t)
	pgtest.Shift(t, s.db, time.Hour)
	second := s.owe(t)
	s.owe(t) // waits for nobody
	limit := &source.LimitError{Source: "facilitator/hosted", Until: s.opened.Add(2 * time.Hour)}
	for _, id := range []call.ID{first.Payment.Call, second.Payment.Call} {
		if _, err := s.db.Exec(t.Context(), `UPDATE refunds SET waits_for = $2, next_at = $3 WHERE call_id = $1`, id, limit.Source, limit.Until); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, all ...Deferred) {
		t.Helper()
		got, err := Store{}.Deferred(t.Context(), s.db)
		if err != nil || len(got) != len(all) || len(got) > 0 && got[0] != all[0] {
			t.Errorf("%s: %+v, %v; want %+v", when, got, err, all)
		}
	}
	want("both wait", Deferred{Source: "facilitator/hosted", N: 2, Oldest: time.Hour})
	// A refund that came to nothing waits for nobody, whatever it waited for.
	if _, err := s.db.Exec(t.Context(), `UPDATE refunds SET state = 'void' WHERE call_id = $1`, first.Payment.Call); err != nil {
		t.Fatal(err)
	}
	want("one is void", Deferred{Source: "facilitator/hosted", N: 1})
	if _, err := s.db.Exec(t.Context(), `UPDATE refunds SET state = 'void'`); err != nil {
		t.Fatal(err)
	}
	want("none is left")
}
