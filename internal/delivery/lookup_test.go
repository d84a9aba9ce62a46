package delivery

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
	"market/internal/refund"
)

func (s shelf) lookup(t *testing.T, id call.ID) Record {
	t.Helper()
	r, err := Lookup(t.Context(), s.db, id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLookup_APaidCallShowsItsPaymentAndItsRefund(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.asked(t).failed()
	d.Status = 500
	asked := s.lookup(t, d.Call)
	if asked.State != call.Asked || asked.Outcome != "" || !asked.Asked || !asked.AskedAt.Equal(d.AskedAt) || asked.Charged() != ChargedPending ||
		!asked.Proved || asked.Returning() != nil || asked.Service != "weather" || asked.Method != "GET" || asked.Path != "/" {
		t.Errorf("while the service is asked: %+v", asked)
	}

	s.record(t, d)
	got := s.lookup(t, d.Call)
	if got.State != call.StateFailed || got.Outcome != call.Failed || got.Reason != call.Upstream5xx || got.Party != call.Service ||
		got.Origin != call.External || got.Detail != d.Detail || got.Trial || !got.Asked || got.Status != 500 || got.Charged() != ChargedNo ||
		!got.Created.Equal(s.opened) || !got.Recorded.Equal(s.opened) {
		t.Errorf("after its failure: %+v", got)
	}
	p := d.Refund.Payment
	paid := got.Paid()
	if paid == nil || paid.Network != p.Network || paid.Asset != p.Asset || paid.Payer != p.Payer || paid.Amount.Cmp(p.Amount) != 0 ||
		paid.Transaction != p.Transaction || !paid.Proved || got.Block != 90 {
		t.Errorf("payment = %+v in block %d, want %+v", paid, got.Block, p)
	}
	back := got.Returning()
	if back == nil || back.State != refund.StateOwed || back.To != p.Payer || back.Amount.Cmp(p.Amount) != 0 || back.Network != p.Network {
		t.Errorf("refund = %+v, want it owed to %s", back, p.Payer)
	}

	pgtest.Shift(t, s.db, rest)
	served := s.asked(t).served()
	s.record(t, served)
	if got := s.lookup(t, served.Call); got.Outcome != call.Served || got.Charged() != ChargedYes || got.Returning() != nil {
		t.Errorf("a served call: %+v, want it charged and nothing coming back", got)
	}
}

func TestLookup_AnUnprovedPaymentIsPendingUnlessItWasReleased(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.claim(t)
	if got := s.lookup(t, c.ID); got.State != call.Settling || got.Charged() != ChargedPending || got.Proved || got.Asked || got.Paid() == nil {
		t.Errorf("claimed: %+v, want it pending", got)
	}
	sent := common.Hash{7}
	if err := (payment.Store{}).Unsettle(t.Context(), s.db, c.ID, s.owner, call.Unknown, "settlement_pending", sent); err != nil {
		t.Fatal(err)
	}
	if got := s.lookup(t, c.ID); got.Charged() != ChargedPending || got.Proved || got.Transaction != sent || got.Why != "settlement_pending" {
		t.Errorf("sent and unproved: %+v, want it pending, with the transaction that was sent", got)
	}
	c = s.claim(t)
	if err := (payment.Store{}).Unsettle(t.Context(), s.db, c.ID, s.owner, call.StateReleased, "", common.Hash{}); err != nil {
		t.Fatal(err)
	}
	if got := s.lookup(t, c.ID); got.Charged() != ChargedNo {
		t.Errorf("released: %+v, want it not charged", got)
	}
}

func TestLookup_ATrialHasNoPayment(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.trial(t).served()
	s.record(t, d)
	got := s.lookup(t, d.Call)
	if !got.Trial || got.Outcome != call.Served || got.State != "" || got.Charged() != ChargedNo || got.Paid() != nil || got.Returning() != nil ||
		!got.Created.IsZero() || !got.AskedAt.Equal(s.opened) || got.Service != "weather" || got.Endpoint != s.endpoint.ID {
		t.Errorf("a trial: %+v", got)
	}
}

func TestLookup_ARefusalIsFoundWhereItHasARow(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.refusal(call.InputInvalid, "192.0.2.1")
	s.refuse(t, d)
	got := s.lookup(t, d.Call)
	if got.Outcome != call.Refused || got.Reason != call.InputInvalid || got.Party != call.Caller || got.Detail != "because" || got.Asked ||
		got.State != "" || got.Charged() != ChargedNo || got.Paid() != nil {
		t.Errorf("a refusal: %+v", got)
	}

	counted := s.refusal(call.PaymentInvalid, "192.0.2.1")
	s.refuse(t, counted)
	for name, id := range map[string]call.ID{"a refusal without a row": counted.Call, "an id that nobody gave out": call.NewID(), "no id": {}} {
		if _, err := Lookup(t.Context(), s.db, id); !errors.Is(err, ErrNoCall) {
			t.Errorf("%s: %v, want %v", name, err, ErrNoCall)
		}
	}
}
