package letter

import (
	"testing"
	"time"

	"market/internal/postgres/pgtest"
)

func TestStore_Unsent_CountsEachChannelThatWaits(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	want := func(when string, n int64, oldest time.Duration) {
		t.Helper()
		if got, age, err := (Store{}).Unsent(t.Context(), p.db); err != nil || got != n || age != oldest {
			t.Errorf("%s: %d wait, the oldest for %s, %v; want %d for %s", when, got, age, err, n, oldest)
		}
	}
	want("at first", 0, 0)
	p.write(t, []Channel{Email, Webhook}, Kinds()[0])
	pgtest.Shift(t, p.db, time.Minute)
	p.write(t, []Channel{Email}, Kinds()[0])
	want("before anything is sent", 3, time.Minute)
	p.run(t)
	want("when all is sent", 0, 0)
}
