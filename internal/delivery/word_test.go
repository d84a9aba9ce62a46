package delivery

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
	"market/internal/readiness"
	"market/internal/refund"
)

// A call of the shelf costs one cent: 10 000 units of an asset with 6 decimals.
func cents(n string) bound {
	return bound{usd: decimal.RequireFromString(n).Shift(-2), network: chain.Network{ID: network, Assets: []chain.Asset{{Address: common.Address{0xa5}, Decimals: 6}}}}
}

func word(of string) chain.Word { return chain.Word{Of: of, Transaction: proof().Transaction} }

// onWord settles a claim on a word, or says that it is not believed.
func (s shelf) onWord(t *testing.T, c payment.Claim, w chain.Word, b bound) (Delivery, bool) {
	t.Helper()
	standing, ok, err := believed(t.Context(), s.db, c.ID, s.owner, s.service.ID, w, b, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	back := refund.Derive(refund.Payment{Call: c.ID, Network: c.Network, ChainID: 84532, Asset: c.Signed.Asset, Payer: c.Signed.From,
		Nonce: c.Signed.Nonce, Amount: c.Signed.Value, Treasury: c.Signed.To, Transaction: w.Transaction})
	return Delivery{ID: uuid.Must(uuid.NewV7()), Call: c.ID, Service: s.service.ID, Endpoint: s.endpoint.ID, Origin: call.External,
		Method: "GET", Path: "/", Source: source, Payer: c.Signed.From, Refund: &back, owner: s.owner, AskedAt: standing.askedAt}, ok
}

func (s shelf) mustOnWord(t *testing.T, of string) Delivery {
	t.Helper()
	d, ok := s.onWord(t, s.claim(t), word(of), cents("1000"))
	if !ok {
		t.Fatal("a word that fits is not believed")
	}
	return d
}

const unprovedSQL = `UPDATE calls SET payment_state = $2 WHERE id = $1 AND transaction IS NULL AND payment_state = 'sent'`

func (s shelf) lapse(t *testing.T, id call.ID) {
	t.Helper()
	if tag, err := s.db.Exec(t.Context(), unprovedSQL, id, paymentLost); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d rows, %v", tag.RowsAffected(), err)
	}
}

// open reads a call as the sweeper does.
func (s shelf) open(t *testing.T, id call.ID) openCall {
	t.Helper()
	pgtest.Shift(t, s.db, lookMax)
	calls, err := takeLooks(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("call %s is not looked at", id)
	return openCall{}
}

func (s shelf) prove(t *testing.T, id call.ID) chain.Proof {
	t.Helper()
	p := proof()
	if err := lives(t.Context(), s.db, s.open(t, id), paymentMined, p, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBelieved_AWordFitsUpToTheBoundAndNotAbove(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before int
		bound  string
		want   bool
	}{
		"a little less than one payment":        {0, "0.999999", false},
		"exactly one payment":                   {0, "1", true},
		"two, and a little less than a third":   {2, "2.999999", false},
		"two, and exactly a third":              {2, "3", true},
		"two, and the bound is lower than them": {2, "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			for range tt.before {
				s.mustOnWord(t, "hosted")
			}
			c := s.claim(t)
			_, ok := s.onWord(t, c, word("hosted"), cents(tt.bound))
			want := call.Settling
			if tt.want {
				want = call.Asked
			}
			if state := s.state(t, c.ID); ok != tt.want || state != want {
				t.Errorf("believed %v, the call is %s; want %v, %s", ok, state, tt.want, want)
			}
		})
	}
}

func TestBelieved_OnlyWhatIsUnprovedHereCounts(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first := s.mustOnWord(t, "hosted")
	if _, ok := s.onWord(t, s.claim(t), word("hosted"), cents("1")); ok {
		t.Error("a second word is believed where one fits")
	}
	elsewhere := cents("1")
	elsewhere.network.ID = "eip155:1"
	if _, ok := s.onWord(t, s.claim(t), word("hosted"), elsewhere); ok {
		t.Error("a call of one network is settled on a word about another")
	}
	s.prove(t, first.Call)
	if _, ok := s.onWord(t, s.claim(t), word("hosted"), cents("1")); !ok {
		t.Error("a word that fits once the first is proved is not believed")
	}
	s.asked(t) // on a proof
	if _, ok := s.onWord(t, s.claim(t), word("hosted"), cents("2")); !ok {
		t.Error("a call that was asked on a proof counts as unproved")
	}
}

// An asset of which nobody knows the decimals any more could be worth anything.
func TestBelieved_AnAssetThatIsNotConfiguredCountsADollarAUnit(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	gone := s.mustOnWord(t, "hosted")
	if _, err := s.db.Exec(t.Context(), `UPDATE calls SET asset = decode(repeat('cc', 20), 'hex') WHERE id = $1`, gone.Call); err != nil {
		t.Fatal(err)
	}
	for bound, want := range map[string]bool{"1000000": false, "1000001": true} { // 10 000 units are 10 000 dollars
		if _, ok := s.onWord(t, s.claim(t), word("hosted"), cents(bound)); ok != want {
			t.Errorf("%s cents: believed %v, want %v", bound, ok, want)
		}
	}
	c := s.claim(t)
	if _, err := s.db.Exec(t.Context(), `UPDATE calls SET asset = decode(repeat('cc', 20), 'hex') WHERE id = $1`, c.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.onWord(t, c, word("hosted"), cents("100000000")); ok {
		t.Error("a payment in such an asset is settled on a word")
	}
}

// repeatSQL makes so many calls of one, each with an id and a nonce of its own.
const repeatSQL = `
INSERT INTO calls
SELECT r.* FROM calls c, generate_series(1, $2) n,
       LATERAL jsonb_populate_record(c, jsonb_build_object('id', gen_random_uuid(), 'nonce', '\x' || md5(n::text) || md5(n::text))) r
 WHERE c.id = $1`

// What is weighed with each word, and followed by the sweeper, has a limit of its own, whatever it is worth.
func TestBelieved_NoMoreThanSoManyPaymentsAreUnproved(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first := s.mustOnWord(t, "hosted")
	if _, err := s.db.Exec(t.Context(), repeatSQL, first.Call, wordsMax-2); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} { // the last place, and none
		if _, ok := s.onWord(t, s.claim(t), word("hosted"), cents("100000000")); ok != want {
			t.Errorf("believed %v, want %v", ok, want)
		}
	}
}

// Dropping the lock lets several of them see the same room: this is what two replicas would do.
func TestBelieved_OfManyAtOnceAsManyAsFit(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const callers, fit = 24, 5
	claims := make([]payment.Claim, callers)
	for i := range claims {
		claims[i] = s.claim(t)
	}
	var (
		wg  sync.WaitGroup
		got atomic.Int32
	)
	start := make(chan struct{})
	for _, c := range claims {
		wg.Go(func() {
			<-start
			if _, ok := s.onWord(t, c, word("hosted"), cents(strconv.Itoa(fit))); ok {
				got.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	for _, c := range claims { // those that waited for too long
		if _, ok := s.onWord(t, c, word("hosted"), cents(strconv.Itoa(fit))); ok {
			got.Add(1)
		}
	}
	if got.Load() != fit {
		t.Errorf("%d words are believed where %d fit", got.Load(), fit)
	}
}

// Whoever holds the row stops nobody: what cannot be weighed is proved, and its connection is as good as before.
func TestBelieved_WhereTheRowIsHeldTheWordIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.claim(t)
	holder, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), weighSQL, network); err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), wordTime)
	defer cancel()
	_, ok, err := believed(within, s.db, c.ID, s.owner, s.service.ID, word("hosted"), cents("1"), time.Minute)
	opened := s.db.Stat().NewConnsCount()
	if ok || err != nil || s.state(t, c.ID) != call.Settling {
		t.Errorf("believed %v, %v, the call is %s; want it to be proved", ok, err, s.state(t, c.ID))
	}
	if s.db.Stat().NewConnsCount() != opened {
		t.Error("the connection was closed, and another one opened for the next statement")
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.onWord(t, c, word("hosted"), cents("1")); !ok {
		t.Error("once the row is free the word is not believed")
	}
}

// A flood of words takes a few connections and not all.
func TestShow_MoreWordsThanAreWeighedAtOnceAreProved(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	p := NewPath(Config{DB: s.db, Ready: lending(1), OnError: func(err error) { t.Error(err) }})
	s.owner = p.owner
	c := s.claim(t)
	b := cents("1")
	h := held{id: c.ID, state: call.Settling, signed: c.Signed, rail: Rail{Network: b.network, Words: giver{}}}
	r := Request{Target: catalog.Target{Service: &s.service, Endpoint: s.endpoint}}
	for range wordsAtOnce {
		p.weighing <- struct{}{}
	}
	if _, onWord := p.show(t.Context(), r, h, time.Minute); onWord != nil || s.state(t, c.ID) != call.Settling {
		t.Errorf("the call is %s, on its word %v; want it to be proved", s.state(t, c.ID), onWord)
	}
	<-p.weighing
	if _, onWord := p.show(t.Context(), r, h, time.Minute); onWord == nil || s.state(t, c.ID) != call.Asked || len(p.weighing) != wordsAtOnce-1 {
		t.Errorf("the call is %s, on its word %v, %d places are taken; want it asked", s.state(t, c.ID), onWord, len(p.weighing))
	}
}

// lending is readiness where so many US dollars may be unproved.
func lending(usd int64) *readiness.Keeper {
	return readiness.New(nil, readiness.Options{Own: readiness.Terms{Budget: usd*1_000_000 + 3, Rate: 1, Burst: 1}})
}

// A giver gives its word for everything.
type giver struct{}

func (giver) SettleOnWord(ctx context.Context, _ chain.Signed, believe chain.Believe) chain.Settlement {
	believe(ctx, word("hosted"))
	return chain.Settlement{Status: chain.StatusUnknown}
}

func TestBelieved_WhoGaveAFalseWordIsNotBelievedAgain(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.lapse(t, s.mustOnWord(t, "liar").Call)
	pgtest.Shift(t, s.db, 365*24*time.Hour)
	c := s.claim(t)
	if _, ok := s.onWord(t, c, word("liar"), cents("1000")); ok {
		t.Error("a word of who gave a false one is believed")
	}
	if _, ok := s.onWord(t, c, word("honest"), cents("1000")); !ok {
		t.Error("a word of who gave no false one is not believed")
	}
}

// What was proved, and taken back by the chain later, was no lie.
func TestBelieved_AProvedPaymentThatIsLostIsNoFalseWord(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.mustOnWord(t, "hosted")
	s.prove(t, d.Call)
	s.exec(t, lostSQL, d.Call)
	s.mustOnWord(t, "hosted")
}

func TestBelieved_OnlyTheOwnerOfAnOpenCallSettlesOnAWord(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.claim(t)
	other := s
	other.owner = uuid.Must(uuid.NewV7())
	if _, ok := other.onWord(t, c, word("hosted"), cents("1000")); ok {
		t.Error("somebody else settles")
	}
	if _, ok := s.onWord(t, c, word("hosted"), cents("1000")); !ok {
		t.Fatal("its owner does not settle")
	}
	if _, ok := s.onWord(t, c, word("hosted"), cents("1000")); ok {
		t.Error("it is settled twice")
	}
	if _, err := settled(t.Context(), s.db, c.ID, s.owner, s.service.ID, proof(), time.Minute); err != payment.ErrMoved { //nolint:errorlint // it comes bare
		t.Errorf("on a proof after that: %v, want %v", err, payment.ErrMoved)
	}
}

// A payment that failed before and is believed now is no payment that its payer had undone, however its call ends.
func TestBelieved_WhatWentWrongBeforeIsForgotten(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.claim(t)
	s.exec(t, `UPDATE calls SET state = 'unknown', why = '`+string(payment.CodeFunds)+`' WHERE id = $1`, c.ID)
	d, ok := s.onWord(t, c, word("hosted"), cents("1"))
	if !ok {
		t.Fatal("it is not believed")
	}
	s.record(t, d.end(call.RejectedByService, "status 422"))
	payer, err := payment.Store{}.Payer(t.Context(), s.db, payment.Identity{Network: network, Asset: c.Signed.Asset, Payer: c.Signed.From})
	if err != nil || payer.Broke != 0 || payer.Undone != 0 {
		t.Errorf("its payer is %+v, %v", payer, err)
	}
}

func TestBelieved_AServiceThatRestsIsNotAsked(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	c := s.claim(t)
	if _, ok := s.onWord(t, c, word("hosted"), cents("1000")); !ok || s.state(t, c.ID) != call.Settled {
		t.Errorf("believed %v, the call is %s; want it settled", ok, s.state(t, c.ID))
	}
}

// B123: a refund is owed at once, is about the transaction that is proved, and is void where none ever is.
func TestRecorder_Record_ARefundOfAWord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		proved, lapsed, before bool // before the outcome is recorded
		want                   refund.State
		why                    string
	}{
		"not proved yet":            {want: refund.StateOwed},
		"proved after the outcome":  {proved: true, want: refund.StateOwed},
		"proved before the outcome": {proved: true, before: true, want: refund.StateOwed},
		"lapsed before the outcome": {lapsed: true, before: true, want: refund.StateVoid, why: whyFalse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			d := s.mustOnWord(t, "hosted").end(call.RejectedByService, "status 422")
			transaction := d.Refund.Payment.Transaction
			chainSays := func() {
				if tt.proved {
					transaction = s.prove(t, d.Call).Transaction
				}
				if tt.lapsed {
					s.lapse(t, d.Call)
				}
			}
			if tt.before {
				chainSays()
			}
			s.record(t, d)
			if !tt.before {
				chainSays()
			}
			got, err := refund.Store{}.Find(t.Context(), s.db, d.Call)
			if err != nil || got.State != tt.want || got.Payment.Transaction != transaction || got.Why != tt.why {
				t.Errorf("refund %+v, %v; want it %s, %q, of transaction %s", got, err, tt.want, tt.why, transaction)
			}
			if f := s.figures(t); !f.Balanced() {
				t.Errorf("not balanced: %v", f)
			}
		})
	}
}

// A refund that is written while the proof waits for its call is not in sight of the statement that writes the proof.
func TestFinal_ARefundIsOfTheTransactionThatIsFinal(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.refunded(t)
	const staleSQL = `UPDATE refunds SET payment_transaction = decode(repeat('5a', 32), 'hex') WHERE call_id = $1`
	s.exec(t, staleSQL, d.Call)
	if err := final(t.Context(), s.db, []call.ID{d.Call}); err != nil {
		t.Fatal(err)
	}
	got, err := refund.Store{}.Find(t.Context(), s.db, d.Call)
	if err != nil || got.Payment.Transaction != d.Refund.Payment.Transaction {
		t.Errorf("refund of %s, %v; want of %s", got.Payment.Transaction, err, d.Refund.Payment.Transaction)
	}
}

func TestPromiseOne_WhatIsNotProvedIsNotPaid(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	want := func(when, paid, served, owed, pending, unproved, carried string) {
		t.Helper()
		f := s.figures(t)
		if len(f) != 1 || !f.Balanced() || f[0].Lost.String() != "0" {
			t.Fatalf("%s: %v", when, f)
		}
		got := [6]string{f[0].Paid.String(), f[0].Served.String(), f[0].RefundOwed.String(), f[0].Pending.String(), f[0].Unproved.String(), f[0].Carried.String()}
		if want := [6]string{paid, served, owed, pending, unproved, carried}; got != want {
			t.Errorf("%s: paid, served, owed, pending, unproved, carried are %v, want %v", when, got, want)
		}
	}
	good, bad := s.mustOnWord(t, "hosted"), s.mustOnWord(t, "hosted")
	want("asked", "0", "0", "0", "0", "20000", "0")
	s.record(t, good.served())
	s.record(t, bad.end(call.RejectedByService, "status 422"))
	want("ended", "0", "0", "0", "0", "20000", "0")
	s.prove(t, good.Call)
	want("one is proved", "10000", "10000", "0", "0", "10000", "0")
	s.prove(t, bad.Call)
	want("both are proved", "20000", "10000", "10000", "0", "0", "0")
	open := s.mustOnWord(t, "liar")
	s.prove(t, open.Call)
	want("proved, and no outcome yet", "30000", "10000", "10000", "10000", "0", "0")

	lie, other := s.mustOnWord(t, "liar"), s.mustOnWord(t, "liar")
	s.record(t, lie.served())
	s.record(t, other.end(call.RejectedByService, "status 422"))
	s.lapse(t, lie.Call)
	s.lapse(t, other.Call)
	s.exec(t, voidSQL, other.Call)
	want("two never came, one of them was served", "30000", "10000", "10000", "10000", "0", "10000")
	s.exec(t, `UPDATE refunds SET state = 'owed' WHERE call_id = $1`, other.Call)
	if f := s.figures(t); f.Balanced() {
		t.Errorf("a refund of money that never came is hidden: %v", f)
	}
}
