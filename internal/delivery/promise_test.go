package delivery

import (
	"testing"

	"market/internal/call"
	"market/internal/money"
)

const (
	confirmedSQL = `
UPDATE refunds SET state = 'confirmed', transaction = decode(repeat('c0', 32), 'hex'), log_index = 1, block_number = 9, confirmed_at = market_now()
 WHERE call_id = $1`
	lostSQL = `UPDATE calls SET payment_state = 'lost' WHERE id = $1`
	voidSQL = `UPDATE refunds SET state = 'void' WHERE call_id = $1`
)

func (s shelf) exec(t *testing.T, sql string, id call.ID) {
	t.Helper()
	if tag, err := s.db.Exec(t.Context(), sql, id); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%s: %d rows, %v", sql, tag.RowsAffected(), err)
	}
}

func (s shelf) figures(t *testing.T) Figures {
	t.Helper()
	figures, err := PromiseOne(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	return figures
}

func TestPromiseOne_EveryPaymentIsInOnePlace(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	if got := s.figures(t); len(got) != 0 || !got.Balanced() {
		t.Errorf("figures of nothing: %v", got)
	}
	s.claim(t) // has not paid
	for range 3 {
		s.record(t, s.asked(t).served())
	}
	for _, state := range []string{"owed", "sent", "parked"} {
		s.exec(t, `UPDATE refunds SET state = '`+state+`' WHERE call_id = $1`, s.refunded(t).Call)
	}
	s.exec(t, confirmedSQL, s.refunded(t).Call)
	s.asked(t)
	lost := s.asked(t).served()
	s.record(t, lost)
	s.exec(t, lostSQL, lost.Call)
	gone := s.refunded(t)
	s.exec(t, lostSQL, gone.Call)
	s.exec(t, voidSQL, gone.Call)
	s.exec(t, lostSQL, s.asked(t).Call) // and no outcome yet

	price := func(n uint64) string { return money.FromUnits(n * 10_000).String() }
	got := s.figures(t)
	if len(got) != 1 {
		t.Fatalf("%d figures, want those of one asset: %v", len(got), got)
	}
	f := got[0]
	for name, tt := range map[string]struct{ got, want string }{
		"paid":             {f.Paid.String(), price(11)},
		"served":           {f.Served.String(), price(3)},
		"refund owed":      {f.RefundOwed.String(), price(3)},
		"refund confirmed": {f.RefundConfirmed.String(), price(1)},
		"lost":             {f.Lost.String(), price(3)},
		"pending":          {f.Pending.String(), price(1)},
		"network":          {f.Network, network},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %s, want %s", name, tt.got, tt.want)
		}
	}
	if !got.Balanced() {
		t.Errorf("not balanced: %v", got)
	}
}

// refunded records a call that the service turned down: no strike, no rest, and the money goes back.
func (s shelf) refunded(t *testing.T) Delivery {
	t.Helper()
	d := s.asked(t).end(call.RejectedByService, "status 422")
	s.record(t, d)
	return d
}

func TestPromiseOne_ShowsWhatIsInNoPlaceOrInTwo(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, s shelf){
		"a failure without its refund": func(t *testing.T, s shelf) {
			s.exec(t, `DELETE FROM refunds WHERE call_id = $1`, s.refunded(t).Call)
		},
		"a refund of another amount": func(t *testing.T, s shelf) {
			s.exec(t, `UPDATE refunds SET amount = amount - 1 WHERE call_id = $1`, s.refunded(t).Call)
		},
		"a refund that is void and whose payment stands":  func(t *testing.T, s shelf) { s.exec(t, voidSQL, s.refunded(t).Call) },
		"a refund that is owed and whose payment is lost": func(t *testing.T, s shelf) { s.exec(t, lostSQL, s.refunded(t).Call) },
		"two wrongs that make up for each other": func(t *testing.T, s shelf) {
			s.exec(t, `DELETE FROM refunds WHERE call_id = $1`, s.refunded(t).Call)
			d := s.asked(t)
			s.record(t, d.served())
			if err := s.recorder.refunds.Owe(t.Context(), s.db, *d.Refund); err != nil {
				t.Fatal(err)
			}
		},
		"a refund of what was served": func(t *testing.T, s shelf) {
			d := s.asked(t)
			s.record(t, d.served())
			if err := s.recorder.refunds.Owe(t.Context(), s.db, *d.Refund); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			damage(t, s)
			if got := s.figures(t); len(got) != 1 || got.Balanced() {
				t.Errorf("the figures hide it: %v", got)
			}
		})
	}
}
