package delivery

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
)

func retireEndpoint(t *testing.T, s shelf) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
		_, err := catalog.Store{}.RetireEndpoint(t.Context(), tx, &s.service, s.endpoint.ID, catalog.AdminToken)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSettled_TheServiceIsAskedWhereItIsListedAndDoesNotRest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, s shelf)
		want    standing // without the instant
		state   call.State
	}{
		"listed": {func(*testing.T, shelf) {}, standing{listed: true}, call.Asked},
		"delisted": {func(t *testing.T, s shelf) {
			if err := s.delist(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, standing{}, call.Settled},
		"its endpoint is retired": {retireEndpoint, standing{}, call.Settled},
		"just before the end of its rest": {func(t *testing.T, s shelf) {
			s.fail(t)
			pgtest.Shift(t, s.db, rest-time.Microsecond)
		}, standing{listed: true, cooling: true, rest: time.Microsecond}, call.Settled},
		"exactly at the end of its rest": {func(t *testing.T, s shelf) {
			s.fail(t)
			pgtest.Shift(t, s.db, rest)
		}, standing{listed: true}, call.Asked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			tt.prepare(t, s)
			d, got := s.paid(t)
			if got.listed != tt.want.listed || got.cooling != tt.want.cooling || got.rest != tt.want.rest {
				t.Errorf("standing = %+v, want %+v", got, tt.want)
			}
			const rowSQL = `
SELECT state, asked_at, transaction IS NOT NULL, lease_until - market_now() FROM calls WHERE id = $1`
			var (
				state  call.State
				asked  *time.Time
				proved bool
				lease  time.Duration
			)
			if err := s.db.QueryRow(t.Context(), rowSQL, d.Call).Scan(&state, &asked, &proved, &lease); err != nil {
				t.Fatal(err)
			}
			if state != tt.state || !proved || lease != time.Minute {
				t.Errorf("call is %s, proved %v, leased for %s; want %s, proved, for a minute", state, proved, lease, tt.state)
			}
			if (asked != nil) != (tt.state == call.Asked) || (asked != nil && !asked.Equal(got.askedAt)) {
				t.Errorf("asked at %v in the row and %v in the standing", asked, got.askedAt)
			}
		})
	}
}

// The statements of the paid path and State.Sells are one rule, written twice.
func TestSettled_AServiceIsAskedInTheStatesThatSell(t *testing.T) {
	t.Parallel()
	steps := map[catalog.State][]catalog.Change{
		catalog.Listed:    nil,
		catalog.Delisted:  {{Cause: catalog.CauseStrikes, By: catalog.Recorder, Reason: "why"}},
		catalog.Suspended: {{Cause: catalog.CauseSuspension, By: catalog.AdminToken, Reason: "why"}},
		catalog.Held:      {{Cause: catalog.CauseReview, By: catalog.System, Reason: "why"}},
		catalog.Retired:   {{Cause: catalog.CauseWithdrawn, By: catalog.AdminToken, Reason: "why"}},
	}
	for _, state := range catalog.States() {
		s := newShelf(t)
		waiting, _ := s.paid(t) // found in state asked, and sent back to settled for another try
		if _, err := s.db.Exec(t.Context(), `UPDATE calls SET state = 'settled', asked_at = NULL WHERE id = $1`, waiting.Call); err != nil {
			t.Fatal(err)
		}
		for _, c := range steps[state] {
			if moved, err := (catalog.Store{}).Move(t.Context(), s.db, s.service.ID, c); err != nil || !moved {
				t.Fatal(state, moved, err)
			}
		}
		d, paid := s.paid(t)
		tried, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, sharing(3), somebody)
		if err != nil {
			t.Fatal(err)
		}
		resumed, err := resume(t.Context(), s.db, waiting.Call, s.owner, s.service.ID, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		want := state.Sells()
		if paid.listed != want || tried.listed != want || resumed.listed != want {
			t.Errorf("%s: a payment, a trial and a retry find it listed: %v, %v, %v; want %v", state, paid.listed, tried.listed, resumed.listed, want)
		}
		for _, id := range []call.ID{d.Call, waiting.Call} {
			if got := s.state(t, id); (got == call.Asked) != want || !want && got != call.Settled {
				t.Errorf("%s: the call is %s", state, got)
			}
		}
	}
}

func TestResume_ASettledCallIsAskedWhereItsServiceAndItsEndpointAreOnTheShelf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, s shelf)
		listed  bool
		state   call.State
	}{
		"on the shelf":            {func(*testing.T, shelf) {}, true, call.Asked},
		"its endpoint is retired": {retireEndpoint, false, call.Settled},
		"delisted": {func(t *testing.T, s shelf) {
			if err := s.delist(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, false, call.Settled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.fail(t) // so that the payment is settled, and the service not asked
			d, _ := s.paid(t)
			pgtest.Shift(t, s.db, rest)
			tt.prepare(t, s)
			got, err := resume(t.Context(), s.db, d.Call, s.owner, s.service.ID, time.Minute)
			if err != nil || got.listed != tt.listed || got.cooling {
				t.Errorf("standing = %+v, %v; want listed = %v", got, err, tt.listed)
			}
			if state := s.state(t, d.Call); state != tt.state {
				t.Errorf("the call is %s, want %s", state, tt.state)
			}
		})
	}
}

func TestSettled_ATransferPaysOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first, second, p := s.claim(t), s.claim(t), proof()
	if _, err := settled(t.Context(), s.db, first.ID, s.owner, s.service.ID, p, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := settled(t.Context(), s.db, second.ID, s.owner, s.service.ID, p, time.Minute); !errors.Is(err, errTransferTaken) {
		t.Errorf("the same transfer again: %v, want %v", err, errTransferTaken)
	}
	if state := s.state(t, second.ID); state != call.Settling {
		t.Errorf("the second call is %s, want it where it was", state)
	}
	p.LogIndex++ // another transfer of the same transaction
	if _, err := settled(t.Context(), s.db, second.ID, s.owner, s.service.ID, p, time.Minute); err != nil {
		t.Errorf("another transfer of that transaction: %v", err)
	}
}

func TestSettled_OnlyTheOwnerSettlesAndOnlyOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.claim(t)
	if _, err := settled(t.Context(), s.db, c.ID, uuid.Must(uuid.NewV7()), s.service.ID, proof(), time.Minute); !errors.Is(err, payment.ErrMoved) {
		t.Errorf("somebody else settles: %v, want %v", err, payment.ErrMoved)
	}
	var (
		wg   sync.WaitGroup
		wins atomic.Int32
	)
	for range 10 {
		wg.Go(func() {
			_, err := settled(t.Context(), s.db, c.ID, s.owner, s.service.ID, proof(), time.Minute)
			switch {
			case err == nil:
				wins.Add(1)
			case !errors.Is(err, payment.ErrMoved):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d settlements of one call were written, want 1", wins.Load())
	}
}
