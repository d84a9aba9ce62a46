package notify

import (
	"testing"
	"time"

	"market/internal/postgres/pgtest"
)

func TestStore_ToldOf_SaysByWhichChannelTheOperatorKnows(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail")
	pgtest.Freeze(t, o.db)
	o.raise(t, SourceOut, "facilitator/hosted")
	want := func(when string, sent bool, channel string, unsent int64, oldest time.Duration) {
		t.Helper()
		told, err := Store{}.ToldOf(t.Context(), o.db, []Kind{SourceOut, GuardReached})
		if err != nil || len(told) != 1 || told[0].Subject != "facilitator/hosted" || (told[0].SentAt != nil) != sent || told[0].Channel != channel {
			t.Errorf("%s: %+v, %v", when, told, err)
		}
		if n, age, err := (Store{}).Unsent(t.Context(), o.db); err != nil || n != unsent || age != oldest {
			t.Errorf("%s: %d wait, the oldest for %s, %v; want %d for %s", when, n, age, err, unsent, oldest)
		}
	}
	pgtest.Shift(t, o.db, time.Minute)
	want("before it is sent", false, "", 1, time.Minute)
	o.work(t)
	want("when it is sent", true, "mail", 0, 0)
	o.raise(t, ServiceHeld, "weather") // of another kind
	o.work(t)
	o.settle(t, SourceOut, "facilitator/hosted")
	want("while it is calm", true, "mail", 0, 0)
	pgtest.Shift(t, o.db, CalmFor)
	o.work(t)
	if told, err := (Store{}).ToldOf(t.Context(), o.db, []Kind{SourceOut}); err != nil || len(told) != 0 {
		t.Errorf("when it is over: %+v, %v", told, err)
	}
}
