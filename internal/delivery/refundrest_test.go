package delivery

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres/pgtest"
)

func TestRefundPolicy_RefundRest_CountsWhatAPayerCanProvoke(t *testing.T) {
	t.Parallel()
	limit := RefundPolicy{Count: 5, Window: 10 * time.Minute}
	payer, another := common.Address{0xca}, uuid.Must(uuid.NewV7()) // the payer of every call of the shelf
	for name, tt := range map[string]struct {
		end      func(Delivery) Delivery
		payer    common.Address
		endpoint *uuid.UUID // nil: the one that was called
		want     time.Duration
	}{
		"failures of the service":      {Delivery.failed, payer, nil, limit.Window},
		"what the service refused":     {func(d Delivery) Delivery { return d.end(call.RejectedByService, "") }, payer, nil, limit.Window},
		"streams that it held up":      {func(d Delivery) Delivery { return d.end(call.CallerStalled, "") }, payer, nil, limit.Window},
		"failures of ours":             {func(d Delivery) Delivery { return d.end(call.LocalError, "") }, payer, nil, 0},
		"answers that were served":     {Delivery.served, payer, nil, 0},
		"failures of trials":           {func(d Delivery) Delivery { d.Trial, d.Refund = true, nil; return d.failed() }, payer, nil, 0},
		"failures of another endpoint": {Delivery.failed, payer, &another, 0},
		"failures that others met":     {Delivery.failed, common.Address{0xcb}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			for range limit.Count {
				d := s.asked(t)
				d.Origin = call.Own // measured all the same, and the service goes on
				s.record(t, tt.end(d))
			}
			endpoint := s.endpoint.ID
			if tt.endpoint != nil {
				endpoint = *tt.endpoint
			}
			if got, err := limit.refundRest(t.Context(), s.db, tt.payer, endpoint); err != nil || got != tt.want {
				t.Errorf("refused for %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// Whoever leaves a stream early has not shown that it takes what it pays for.
func TestRefundPolicy_RefundRest_AStreamThatWasLeftOutweighsNoRefund(t *testing.T) {
	t.Parallel()
	for reason, want := range map[call.Reason]time.Duration{call.CallerLeft: 10 * time.Minute, call.OK: 0} {
		s := newShelf(t)
		limit := RefundPolicy{Count: 5, Window: 10 * time.Minute}
		for _, ends := range []call.Reason{reason, call.CallerStalled} {
			for range limit.Count {
				d := s.asked(t)
				d.Origin = call.Own
				if d = d.end(ends, ""); d.Outcome == call.Served {
					d.Refund = nil
				}
				s.record(t, d)
			}
		}
		if got, err := limit.refundRest(t.Context(), s.db, common.Address{0xca}, s.endpoint.ID); err != nil || got != want {
			t.Errorf("beside as many %s: refused for %s, %v; want %s", reason, got, err, want)
		}
	}
}

func TestRefundPolicy_RefundRest_EndsExactlyWhenItSays(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	limit := RefundPolicy{Count: 5, Window: 10 * time.Minute}
	for range limit.Count {
		d := s.asked(t)
		d.Origin = call.Own
		s.record(t, d.failed())
	}
	for _, tt := range []struct{ shift, want time.Duration }{
		{limit.Window - time.Microsecond, time.Microsecond},
		{time.Microsecond, 0},
	} {
		pgtest.Shift(t, s.db, tt.shift)
		if got, err := limit.refundRest(t.Context(), s.db, common.Address{0xca}, s.endpoint.ID); err != nil || got != tt.want {
			t.Errorf("refused for %s, %v; want %s", got, err, tt.want)
		}
	}
}
