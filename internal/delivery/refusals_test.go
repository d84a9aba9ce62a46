package delivery

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres/pgtest"
)

// refusal returns a refusal of an input, from an address.
func (s shelf) refusal(reason call.Reason, from string) Delivery {
	d := Delivery{ID: uuid.Must(uuid.NewV7()), Call: call.NewID(), Service: s.service.ID, Endpoint: s.endpoint.ID, Origin: call.External,
		Method: "GET", Path: "/", Source: netip.MustParseAddr(from)}
	return d.end(reason, "because")
}

func (s shelf) refuse(t *testing.T, d Delivery) (kept bool) {
	t.Helper()
	kept, err := s.recorder.Refuse(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// counted returns how many refusals of a prefix were counted, and how many rows of deliveries there are in all.
func (s shelf) counted(t *testing.T, prefix string) (count, rows int) {
	t.Helper()
	const countedSQL = `
SELECT (SELECT coalesce(sum(count), 0) FROM refusal_counts WHERE prefix = $1), (SELECT count(*) FROM deliveries)`
	if err := s.db.QueryRow(t.Context(), countedSQL, netip.MustParsePrefix(prefix)).Scan(&count, &rows); err != nil {
		t.Fatal(err)
	}
	return count, rows
}

func TestRecorder_Refuse_EveryRefusalIsCountedAndSomeAreKept(t *testing.T) {
	t.Parallel()
	kept := map[call.Reason]bool{call.InputEmpty: true, call.InputInvalid: true, call.InputTooLarge: true, call.NotLive: true}
	for _, row := range call.Rows() {
		if row.Outcome != call.Refused {
			continue
		}
		t.Run(string(row.Reason), func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			d := s.refusal(row.Reason, "192.0.2.1")
			if got := s.refuse(t, d); got != kept[row.Reason] {
				t.Errorf("kept = %v, want %v", got, kept[row.Reason])
			}
			wantRows := map[bool]int{true: 1}[kept[row.Reason]]
			if count, rows := s.counted(t, "192.0.2.0/24"); count != 1 || rows != wantRows {
				t.Errorf("counted %d, %d rows; want 1 and %d", count, rows, wantRows)
			}
			s.want(t, "a refusal", world{Deliveries: wantRows})
		})
	}
}

func TestRecorder_Refuse_KeepsSixtyRowsAMinuteOfOnePrefixAndCountsTheRest(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for n := range rowsPerMinute {
		if !s.refuse(t, s.refusal(call.InputInvalid, "192.0.2.1")) {
			t.Fatalf("refusal %d of the minute has no row", n+1)
		}
	}
	if s.refuse(t, s.refusal(call.InputEmpty, "192.0.2.200")) {
		t.Error("one more of the same prefix, for another reason, has a row")
	}
	if count, rows := s.counted(t, "192.0.2.0/24"); count != rowsPerMinute+1 || rows != rowsPerMinute {
		t.Errorf("counted %d, %d rows; want %d and %d", count, rows, rowsPerMinute+1, rowsPerMinute)
	}
	if !s.refuse(t, s.refusal(call.InputInvalid, "192.0.3.1")) {
		t.Error("the first of another prefix has no row")
	}
	nextMinute := s.opened.Truncate(time.Minute).Add(time.Minute).Sub(s.opened)
	pgtest.Shift(t, s.db, nextMinute-time.Microsecond)
	if s.refuse(t, s.refusal(call.InputInvalid, "192.0.2.1")) {
		t.Error("one at the end of that minute has a row")
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	if !s.refuse(t, s.refusal(call.InputInvalid, "192.0.2.1")) {
		t.Error("the first of the next minute has no row")
	}
}

func TestRecorder_Refuse_NoneOfManyAtOnceIsLostToTheCount(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const refusals = 40
	var wg sync.WaitGroup
	for range refusals {
		wg.Go(func() {
			if _, err := s.recorder.Refuse(t.Context(), s.refusal(call.PaymentInvalid, "2001:db8:1:2::3")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if count, rows := s.counted(t, "2001:db8:1::/48"); count != refusals || rows != 0 {
		t.Errorf("counted %d, %d rows; want %d and none", count, rows, refusals)
	}
}
