package refund

import (
	"context"
	"sync"
	"testing"

	"market/internal/chain"
)

func TestWorker_ManyOnOneRefundMoveTheMoneyOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	f.refund = network.Confirmations
	const workers = 8
	var (
		wg    sync.WaitGroup
		start = make(chan struct{})
	)
	for range workers {
		w := f.worker(t, s)
		wg.Go(func() {
			<-start
			for range 3 {
				if err := run(t, w, o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	mustRun(t, f.worker(t, s), o)

	got, _ := s.find(t, o)
	if got.State != StateConfirmed || got.Transaction != refundProof.Transaction {
		t.Errorf("refund = %+v, want it confirmed by %s", got, refundProof.Transaction)
	}
	for _, sent := range f.sent {
		if !sameTransfer(sent.Expect(), o.expectRefund()) {
			t.Errorf("sent %+v, want the transfer %+v", sent, o.expectRefund())
		}
	}
	if n := len(s.signed(t, o)); n != 1 {
		t.Errorf("%d signatures at one moment of chain time, want 1", n)
	}
}

func TestWorker_WhoComesBackLateDoesNotUndoAConfirmation(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	f.refund = network.Confirmations
	sending, confirmed := make(chan struct{}), make(chan struct{})
	f.settle = func(_ context.Context, sent chain.Signed) chain.Settlement {
		f.mu.Lock()
		f.used, f.paid = true, &sent
		f.mu.Unlock()
		close(sending)
		<-confirmed
		return chain.Settlement{Status: chain.StatusUnknown}
	}
	var wg sync.WaitGroup
	late := f.worker(t, s)
	wg.Go(func() {
		if err := run(t, late, o); err != nil {
			t.Error(err)
		}
	})
	<-sending
	err := run(t, f.worker(t, s), o)
	close(confirmed)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.find(t, o); got.State != StateConfirmed {
		t.Errorf("refund is %s, want it confirmed", got.State)
	}
}
