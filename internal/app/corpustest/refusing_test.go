package corpustest

import (
	"context"
	"sync"
	"time"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/chain"
	"market/internal/delivery"
)

// A naysayer is a facilitator that says no to some payers, and whatever our own says to all others.
type naysayer struct{ delivery.Settler }

// denied are the payers that it says no to, of all markets.
var denied sync.Map

func (n naysayer) Settle(ctx context.Context, s chain.Signed) chain.Settlement {
	if _, no := denied.Load(s.From); no {
		return chain.Settlement{Status: chain.StatusRejected, PayerFault: true, Why: "insufficient_funds"}
	}
	return n.Settler.Settle(ctx, s)
}

// refusing is where a facilitator may keep an authorization that it refuses, and use it later.
var refusing = &place{name: "a facilitator of others", atOnce: 1, options: []app.Option{
	app.WithSettler(func(_ string, engine delivery.Settler) delivery.Settler { return naysayer{engine} }),
}}

// refusedPayment has a payment refused whose payer has no money, and returns its header and its call.
func (s *stage) refusedPayment() (header, id string) {
	s.Helper()
	s.broke()
	denied.Store(s.payer.Address(), true)
	header = s.signed()
	s.send(s.ask, header)
	s.must("settle_rejected")
	return header, s.call
}

// ends lets time pass, on the chain and in the market, until the call has ended.
func (s *stage) ends(id string) {
	s.Helper()
	apptest.Eventually(s, "call "+id+" ends", func() bool {
		if err := s.Chain.Mine(s.Context(), 1); err != nil {
			s.Fatal(err)
		}
		s.Shift(s, 5*time.Second)
		return s.Books(s, id).Outcome != ""
	})
	s.ended(id)
}

// refusingRows are payments that were refused when they had been shown to somebody already.
func refusingRows() []row {
	return []row{
		{name: "a payment is refused because its payer has no money, and never moves", want: refused(call.SettleRejected, 0).moving(1, 0),
			play: func(s *stage) {
				header, id := s.refusedPayment()
				s.Lapse(s, apptest.Signed(s, header).ValidBefore, 2)
				s.ends(id)
			}},
		{name: "a payment is refused because its payer has no money, and moves after all",
			want: want{outcome: call.Failed, reason: call.LateSettlement, party: call.Rail, paid: 2, back: 1}, play: func(s *stage) {
				header, id := s.refusedPayment()
				s.Mint(s, s.payer.Address(), apptest.PriceUnits)
				s.wallets[s.payer] += apptest.PriceUnits
				s.Relay(s, apptest.Signed(s, header))
				s.ends(id)
			}},
	}
}
