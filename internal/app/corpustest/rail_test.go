package corpustest

import (
	"net/http"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/devnet"
)

// What happens to the chain and to us, one after the other, for all rows of the rail. A row waits for what it needs, and everybody has then done
// what belongs before it.
const (
	_             int64 = iota
	tokenPaused         // the token moves nothing
	tokenResumed        // and does again
	tokenLies           // the token reports success and moves nothing
	tokenHonest         // and is honest again
	brieflyHalted       // no block comes for a moment: settlements that are under way wait
	brieflyOn           // blocks come again
	halted              // no block comes for longer than a settlement waits
	on                  // blocks come again, and whatever was unclear is found
	reorganised         // nothing by itself: here a row takes blocks back
	lapsed              // every authorization is too old by the chain's time
	graceOver           // nobody who has not come back by now is waited for
	alone               // nothing by itself: here a row breaks what all others need
)

// deep is at which depth a transfer is final on the rail: far from the one block after which a call is served, so that blocks can be taken back.
const deep = 12

var rail = &place{name: "the rail", confirmations: deep, advance: func(m *market, from, to int64) {
	for e := from + 1; e <= to; e++ {
		m.happens(e)
	}
}}

func (m *market) happens(event int64) {
	var err error
	ctx := m.t.Context()
	switch event {
	case tokenPaused, tokenResumed:
		err = m.Chain.SetPaused(ctx, event == tokenPaused)
	case tokenLies:
		err = m.Chain.SetLie(ctx, devnet.Silent)
	case tokenHonest:
		err = m.Chain.SetLie(ctx, devnet.Honest)
	case brieflyHalted, halted:
		m.Chain.Pause()
	case brieflyOn, on:
		m.Chain.Resume()
	case lapsed:
		if err = m.Chain.Elapse(ctx, 200); err == nil {
			err = m.Chain.Mine(ctx, deep+1)
		}
		m.Shift(m.t, time.Hour) // looks get rare with time
	case graceOver:
		m.Shift(m.t, 5*time.Minute)
	}
	if err != nil {
		m.t.Errorf("event %d: %v", event, err)
	}
}

// until waits for what happens to everybody.
func (s *stage) until(event int64) { s.clock.await(event) }

// claimed waits until a call of the payer is being settled, and returns its id.
func (s *stage) claimed() (id string) {
	s.Helper()
	apptest.Eventually(s, "the payment is claimed", func() bool { id = s.newest(); return id != "" })
	return id
}

// stands waits until the call stands somewhere in the books.
func (s *stage) stands(id string, state call.State) {
	s.Helper()
	apptest.Eventually(s, "call "+id+" is "+string(state), func() bool { return s.Books(s, id).State == string(state) })
}

// open says that the call which is judged has not ended yet: it is watched until its payment can not move any more.
func (s *stage) open() { s.goesOn = true }

// broke makes the payer somebody who is known here and has no money any more: not a stranger, so nobody looks before the chain does.
func (s *stage) broke() {
	s.Helper()
	s.payer = s.wallet(1)
	s.pay()
	s.must("ok")
}

// keyIsLost makes what is sealed for the service unreadable, as where the operator has lost a key.
const keyIsLostSQL = `
UPDATE service_secrets SET sealed = set_byte(sealed, 0, 255 - get_byte(sealed, 0)) WHERE service_id = (SELECT id FROM services WHERE slug = $1)`

// railRows are what the chain does to payments, and we do.
func railRows() []row {
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	pending := told(call.SettlementPending, 503)
	return []row{
		plays("the token is paused when a payment comes", refused(call.Released, 503), func(s *stage) { s.until(tokenPaused); s.pay(); s.open() }),
		plays("the token is paused, and the same payment comes again when it is not", served, func(s *stage) {
			s.until(tokenPaused)
			header := s.signed()
			s.send(s.ask, header)
			s.must("released")
			s.until(tokenResumed)
			s.send(s.ask, header)
		}),
		plays("the token refuses the payer, who is on its blocklist", refused(call.SettleRejected, 402), func(s *stage) {
			s.block(true)
			s.pay()
			s.open()
		}),
		plays("the money of a payer has gone elsewhere before its payment is settled", refused(call.SettleRejected, 402).moving(1, 0), func(s *stage) {
			s.broke()
			s.pay()
			s.open()
		}),
		plays("a payment never reaches the chain", want{outcome: call.Refused, reason: call.SettleFailed, party: call.Rail}, func(s *stage) {
			s.until(tokenLies)
			s.pay()
			s.must("settlement_pending")
			id := s.call
			s.until(lapsed)
			s.ended(id)
		}),
		plays("no block comes while a payment is settled, and nobody comes back", pending.moving(1, 1), func(s *stage) {
			s.until(halted)
			s.pay()
		}),
		plays("no block comes while a payment is settled, and its caller sends it again (B58)", served, func(s *stage) {
			s.until(halted)
			header := s.signed()
			s.send(s.ask, header)
			s.must("settlement_pending")
			id := s.call
			s.until(on)
			s.stands(id, call.Settled)
			s.send(s.ask, header)
		}),
		plays("a payment was settled while nobody waited for it, and nobody comes back", platformFails(call.Interrupted, 0), func(s *stage) {
			s.until(halted)
			s.pay()
			s.must("settlement_pending")
			id := s.call
			s.until(on)
			s.stands(id, call.Settled) // its grace begins now, and is over when the time comes that nobody waits for it
			s.until(graceOver)
			s.ended(id)
			s.askedTimes(0)
		}),
		plays("the service leaves the shelf while a payment is settled", platformFails(call.Withdrawn, http.StatusGone).being("retired"), func(s *stage) {
			s.until(brieflyHalted)
			answer := s.begin(s.ask, s.signed())
			s.claimed()
			s.retired()
			s.until(brieflyOn)
			s.judgeOn(answer())
			s.askedTimes(0)
		}),
		plays("an admin suspends the service while a payment is settled", platformFails(call.Withdrawn, http.StatusGone).being("suspended"), func(s *stage) {
			s.until(brieflyHalted)
			answer := s.begin(s.ask, s.signed())
			s.claimed()
			s.suspended()
			s.until(brieflyOn)
			s.judgeOn(answer())
			s.askedTimes(0)
		}),
		plays("the service fails a trial call while a payment is settled", resting.moving(1, 1), func(s *stage) {
			s.until(brieflyHalted)
			answer := s.begin(s.ask, s.signed())
			s.claimed()
			s.fails(s.try)
			s.until(brieflyOn)
			s.judgeOn(answer())
		}),
		plays("we lose the key to what the service entrusted to us while a payment is settled", platformFails(call.LocalError, 500), func(s *stage) {
			s.until(brieflyHalted)
			answer := s.begin(s.ask, s.signed())
			s.claimed()
			if _, err := s.DB.Exec(s.Context(), keyIsLostSQL, s.service.Slug); err != nil {
				s.Fatal(err)
			}
			apptest.Eventually(s, "the key is lost", func() bool { return s.Send(s, s.ask, "").Code() == string(call.NotListed) })
			s.until(brieflyOn)
			s.judgeOn(answer())
			s.askedTimes(0)
		}),
		plays("the chain takes a payment back that waits for its caller, and it lapses (B88)",
			want{outcome: call.Failed, reason: call.SettlementLost, party: call.Rail}, func(s *stage) {
				s.until(halted)
				s.pay()
				s.must("settlement_pending")
				id := s.call
				s.until(reorganised)
				s.stands(id, call.Settled)
				s.takenBack()
				s.until(lapsed)
				s.ended(id)
				s.block(false)
			}),
		plays("our database is out of order when a payment comes", told(call.Internal, 500), func(s *stage) {
			s.until(alone)
			header := s.signed()
			for _, sql := range []string{`ALTER TABLE calls RENAME TO elsewhere`, `ALTER TABLE elsewhere RENAME TO calls`} {
				if _, err := s.DB.Exec(s.Context(), sql); err != nil {
					s.Fatal(err)
				}
				if s.last.Status == 0 {
					s.send(s.ask, header)
				}
			}
		}),
	}
}

// block says whether the token refuses to move the payer's money.
func (s *stage) block(blocked bool) {
	s.Helper()
	if err := s.Chain.SetBlocked(s.Context(), s.payer.Address(), blocked); err != nil {
		s.Fatal(err)
	}
}

// takenBack drops the payer's one payment from the chain; what comes again of it is undone until the payer is unblocked. What else the same blocks held is
// sent again by us, and is on the chain again when this returns: it must not lapse meanwhile.
func (s *stage) takenBack() {
	s.Helper()
	in, _ := s.Transfers(s, s.Treasury)
	for _, m := range in {
		if m.From != s.payer.Address() {
			continue
		}
		if err := s.Chain.ReorgAgainst(s.Context(), m.Block, m.From); err != nil {
			s.Fatal(err)
		}
		apptest.Eventually(s, "whatever else was taken back is on the chain again", func() bool {
			again, _ := s.Transfers(s, s.Treasury)
			return len(again) >= len(in)-1
		})
		return
	}
	s.Fatal("the payment is not on the chain")
}

// afterRestore is where a program was restored.
var afterRestore = &place{name: "after a restore", atOnce: 1}

// restoredRows are payments of which a backup does not know.
func restoredRows() []row {
	return []row{{name: "a payment was made before we restored a backup that does not know it", want: told(call.NeedsReview, 409).moving(1, 0),
		play: func(s *stage) {
			header := s.signed()
			s.Relay(s, apptest.Signed(s, header))
			var made time.Time
			apptest.Eventually(s, "the clock is past the chain's time", func() bool {
				head, err := s.Chain.Head(s.Context())
				if err != nil {
					s.Fatal(err)
				}
				made = time.Unix(int64(head.Time), 0) //nolint:gosec // a time of our own chain
				return time.Now().After(made)
			})
			s.at(s.Replica(s, "MARKET_RESTORED_AT="+made.UTC().Format(time.RFC3339)))
			s.send(s.ask, header)
		}}}
}
