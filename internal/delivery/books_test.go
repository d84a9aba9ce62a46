package delivery

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/ledger"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
	"market/internal/refund"
)

// A booked is what a test knows of one call by what it did to it, and nothing that it read from the database.
type booked struct {
	d       Delivery
	price   money.Amount
	feeBPS  int
	seller  uuid.UUID   // of the service at the claim
	proof   chain.Proof // zero: it was never proved
	payment string      // the payment's life; empty: it has none
	open    bool        // has no outcome
	served  bool
	refund  refund.State // empty: none is owed
	back    chain.Proof  // of its refund
}

// A line is one account of the books, by whose share it is and by which transfer.
type line struct {
	account  ledger.Account
	owner    uuid.UUID
	transfer ledger.Transfer
}

func transferOf(p chain.Proof) ledger.Transfer {
	return ledger.Transfer{Transaction: p.Transaction, LogIndex: p.LogIndex, Block: p.BlockNumber}
}

// position is what the books must hold for a call, said again, in another way than the database says it.
func (b booked) position() map[line]money.Signed {
	at := map[line]money.Signed{}
	post := func(account ledger.Account, owner uuid.UUID, transfer ledger.Transfer, amount money.Signed) {
		if amount.Sign() != 0 {
			at[line{account, owner, transfer}] = amount
		}
	}
	none, nobody := ledger.Transfer{}, uuid.UUID{}
	proved, lost := b.proof != chain.Proof{}, b.payment == paymentLost
	share, fee := b.price.Split(b.feeBPS)
	switch {
	case !proved && !lost, lost && !b.served:
		return at
	case lost:
		post(ledger.Losses, nobody, none, b.price.Debit())
	default:
		post(ledger.Treasury, nobody, transferOf(b.proof), b.price.Debit())
	}
	switch {
	case b.served:
		post(ledger.Provider, b.seller, none, share.Credit())
		post(ledger.Fees, nobody, none, fee.Credit())
	case b.open:
		post(ledger.Pending, nobody, none, b.price.Credit())
	case b.refund == refund.StateConfirmed:
		post(ledger.Treasury, nobody, transferOf(b.back), b.price.Credit())
	default:
		post(ledger.RefundsPayable, nobody, none, b.price.Credit())
	}
	return at
}

// A history is one market and the calls that were made in it.
type history struct {
	shelf
	path   *Path
	rail   Rail
	rand   *rand.Rand
	seller uuid.UUID
	calls  []*booked
	beside
}

const (
	sellSQL = `
WITH account AS (
	INSERT INTO accounts (id, wallet) VALUES ($2, $3) RETURNING id
)
UPDATE services SET owner_id = account.id FROM account WHERE services.id = $1`
	openCallSQL  = `SELECT ` + openColumns + ` FROM calls c WHERE id = $1`
	refundingSQL = `UPDATE refunds SET state = $2, transaction = $3, log_index = $4, block_number = $5,
	confirmed_at = CASE WHEN $3::bytea IS NOT NULL THEN market_now() END WHERE call_id = $1`
)

// sell gives the service to a new account.
func (h *history) sell(t *testing.T) {
	t.Helper()
	h.seller = uuid.Must(uuid.NewV7())
	if _, err := h.db.Exec(t.Context(), sellSQL, h.service.ID, h.seller, append(h.seller[:], 0, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	h.pays(t)
}

// row reads a call as the sweeper does.
func (h *history) row(t *testing.T, b *booked) openCall {
	t.Helper()
	rows, err := h.db.Query(t.Context(), openCallSQL, b.d.Call)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanOpen)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (h *history) proof() chain.Proof {
	p := proof()
	p.LogIndex, p.BlockNumber = h.rand.UintN(5), 90+h.rand.Uint64N(20)
	return p
}

// pay makes a call and brings it past its second commit: by a proof, on a word, or as one that the caller was told no of, or up for review.
func (h *history) pay(t *testing.T) (string, *booked) {
	t.Helper()
	b := &booked{feeBPS: []int{0, 1, 250, 3_333, 10_000}[h.rand.IntN(5)], seller: h.seller, open: true}
	b.price, _ = money.FromBig(new(big.Int).Lsh(big.NewInt(1+h.rand.Int64N(1_000_000)), h.rand.UintN(60))) // in range
	claim, way := h.claimOf(t, b.price, b.feeBPS), h.rand.IntN(4)
	switch way {
	case 0, 1:
		b.proof, b.payment = h.proof(), paymentMined
		d, standing := h.settle(t, claim, b.proof)
		if no := resting(standing); no != nil {
			t.Fatalf("the service is not asked: %v", no)
		}
		d.AskedAt = standing.askedAt
		b.d = d
		return "pays", b
	case 2:
		d, ok := h.onWord(t, claim, word(claim.ID.String()), cents("1000000000000000000000000000000"))
		if !ok {
			t.Fatal("a word is not believed")
		}
		b.d, b.payment = d, paymentSent
		return "is believed", b
	}
	if err := (payment.Store{}).Unsettle(t.Context(), h.db, claim.ID, h.owner, call.Rejected, "no", common.Hash{1}); err != nil {
		t.Fatal(err)
	}
	b.d.Call = claim.ID
	if h.rand.IntN(4) == 0 { // it was no rightly
		b.open = false
		h.must(t, h.path.recordSwept(t.Context(), h.row(t, b), call.SettleRejected, "", 0, nil))
		return "is turned down", b
	}
	b.proof, b.payment = h.proof(), paymentMined
	h.must(t, found(t.Context(), h.db, h.row(t, b), b.proof, h.rand.IntN(2) == 0))
	return "is found late", b
}

func (h *history) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// end gives a call its outcome.
func (h *history) end(t *testing.T, b *booked) string {
	t.Helper()
	b.open = false
	if b.d.AskedAt.IsZero() {
		b.owed()
		h.must(t, h.path.recordSwept(t.Context(), h.row(t, b), call.LateSettlement, "", 0, &h.rail))
		return "ends late"
	}
	if h.rand.IntN(2) == 0 {
		b.served = true
		h.record(t, b.d.served())
		return "is served"
	}
	b.owed()
	h.record(t, b.d.end([]call.Reason{call.RejectedByService, call.Upstream5xx}[h.rand.IntN(2)], ""))
	return "is refused or fails"
}

// owed says that what was paid is owed back, where the chain has not taken it back.
func (b *booked) owed() {
	b.refund = refund.StateOwed
	if b.payment == paymentLost {
		b.refund = refund.StateVoid
	}
}

// chain does to a payment what a chain can do to it.
func (h *history) chain(t *testing.T, b *booked) string {
	t.Helper()
	c := h.row(t, b)
	switch {
	case b.payment == paymentMined && h.rand.IntN(3) == 0:
		h.must(t, final(t.Context(), h.db, []call.ID{c.ID}))
		b.payment = paymentFinal
		return "is final"
	case b.payment == paymentMined && h.rand.IntN(2) == 0:
		if _, err := dropped(t.Context(), h.db, c, paymentSent); err != nil {
			t.Fatal(err)
		}
		b.payment = paymentSent
		return "is dropped"
	case b.payment == paymentSent && h.rand.IntN(2) == 0:
		h.must(t, h.path.lose(t.Context(), c))
		b.payment = paymentLost
		if b.refund != "" {
			b.refund = refund.StateVoid
		}
		if b.open && c.Free && (c.State == call.Settled || c.State == call.Asked) {
			b.open = false
		}
		return "is lost"
	}
	b.proof = h.proof()
	h.must(t, lives(t.Context(), h.db, c, paymentMined, b.proof, 0))
	b.payment = paymentMined
	return "is mined"
}

// back moves a refund, as its worker does.
func (h *history) back(t *testing.T, b *booked) string {
	t.Helper()
	b.refund = []refund.State{refund.StateOwed, refund.StateSent, refund.StateParked, refund.StateConfirmed}[h.rand.IntN(4)]
	var (
		transaction []byte
		index       *int
		block       *int64
	)
	if b.refund == refund.StateConfirmed {
		b.back = h.proof()
		i, n := int(b.back.LogIndex), int64(b.back.BlockNumber) //nolint:gosec // made above
		transaction, index, block = b.back.Transaction[:], &i, &n
	}
	if _, err := h.db.Exec(t.Context(), refundingSQL, b.d.Call, b.refund, transaction, index, block); err != nil {
		t.Fatal(err)
	}
	return "has a refund that is " + string(b.refund)
}

// step does one thing that can be done next, and says what it was.
func (h *history) step(t *testing.T) (string, *booked) {
	t.Helper()
	// No rest goes on, and every now and then nobody walks the calls any more.
	pgtest.Shift(t, h.db, []time.Duration{time.Second, time.Second, 2 * time.Minute}[h.rand.IntN(3)])
	if h.rand.IntN(20) == 0 {
		h.sell(t)
	}
	if h.rand.IntN(15) == 0 {
		h.record(t, h.shelf.trial(t).served())
	}
	if len(h.calls) > 0 && h.rand.IntN(10) == 0 {
		return h.enter(t), h.calls[0]
	}
	if len(h.sellers) > 0 && len(h.calls) > 0 && h.rand.IntN(4) == 0 {
		return h.draw(t), h.calls[0]
	}
	if len(h.calls) == 0 || h.rand.IntN(4) == 0 {
		what, b := h.pay(t)
		h.calls = append(h.calls, b)
		return what, b
	}
	var b *booked
	for range 10 { // of some that are done, one that is not
		b = h.calls[h.rand.IntN(len(h.calls))]
		follows := b.payment == paymentSent || b.payment == paymentMined
		switch {
		case b.open && h.rand.IntN(2) == 0:
			return h.end(t, b), b
		case follows:
			return h.chain(t, b), b
		case b.payment == paymentFinal && b.refund != "" && b.refund != refund.StateConfirmed:
			return h.back(t, b), b
		}
	}
	return "is left alone", b
}

// want compares the books of a call with its position.
func (h *history) want(t *testing.T, what string, b *booked) {
	t.Helper()
	postings, err := ledger.Store{}.OfCall(t.Context(), h.db, b.d.Call)
	h.must(t, err)
	holds, sums := map[line]money.Signed{}, map[int64]money.Signed{}
	for _, p := range postings {
		key := line{p.Account, p.Owner, p.Transfer}
		holds[key], sums[p.Transaction] = holds[key].Add(p.Amount), sums[p.Transaction].Add(p.Amount)
	}
	for transaction, sum := range sums {
		if sum.Sign() != 0 {
			t.Errorf("%s: transaction %d sums to %s", what, transaction, sum)
		}
	}
	position := b.position()
	for key, amount := range holds {
		if amount.Cmp(position[key]) != 0 {
			t.Errorf("%s: the books hold %s in %v, want %s", what, amount, key, position[key])
		}
	}
	for key, amount := range position {
		if holds[key].Cmp(amount) != 0 {
			t.Errorf("%s: the books hold %s in %v, want %s", what, holds[key], key, amount)
		}
	}
	if share, fee := b.price.Split(b.feeBPS); b.served && share.Add(fee).Cmp(b.price) != 0 {
		t.Errorf("%s: %s is not %s and %s", what, b.price, share, fee)
	}
}

// promised compares the books with promise one, which is counted from the rows.
func (h *history) promised(t *testing.T, what string) {
	t.Helper()
	figures := h.figures(t)
	balances, err := ledger.Store{}.TrialBalance(t.Context(), h.db)
	h.must(t, err)
	held, sum := map[ledger.Account]money.Signed{}, money.Signed{}
	for _, b := range balances {
		held[b.Account], sum = b.Amount, sum.Add(b.Amount)
	}
	var f Figure
	if len(figures) > 0 {
		f = figures[0]
	}
	if len(figures) > 1 || !figures.Balanced() || sum.Sign() != 0 {
		t.Errorf("%s: promise one: %v, and the books sum to %s", what, figures, sum)
	}
	var lostServed money.Signed // that was proved and is gone
	for _, b := range h.calls {
		if b.served && b.payment == paymentLost && b.proof != (chain.Proof{}) {
			lostServed = lostServed.Add(b.price.Debit())
		}
	}
	bought := lostServed.Add(f.Served.Debit()).Add(f.Carried.Debit())
	for account, want := range map[ledger.Account]money.Signed{
		ledger.Treasury: f.Paid.Debit().Add(f.Lost.Credit()).Add(f.RefundConfirmed.Credit()).
			Add(h.topped).Add(h.unexplained).Add(h.withdrawn.Neg()).Add(h.paidOut.Neg()),
		ledger.Pending:        f.Pending.Credit(),
		ledger.RefundsPayable: f.RefundOwed.Credit(),
		ledger.Losses:         lostServed.Add(f.Carried.Debit()),
		ledger.Provider:       bought.Add(held[ledger.Fees]).Add(h.withdrawn.Neg()).Neg().Add(h.paidOut),
		ledger.Suspense:       h.unexplained.Neg(),
		ledger.Operator:       h.topped.Neg(),
	} {
		if held[account].Cmp(want) != 0 {
			t.Errorf("%s: the books hold %s in %s, want %s by promise one", what, held[account], account, want)
		}
	}
}

// bookSeeds are those of the histories; MARKET_BOOKS_SEED asks for another one. None is drawn: a history that nobody has seen fail must not stop a change that
// has nothing to do with it.
func bookSeeds(t *testing.T) []uint64 {
	t.Helper()
	text := os.Getenv("MARKET_BOOKS_SEED")
	if text == "" {
		return []uint64{1, 2, 3, 4}
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("MARKET_BOOKS_SEED: %v", err)
	}
	return []uint64{seed}
}

// Whatever happens to calls, in whatever order, after each step the books hold what the calls' rows say, and nothing else.
func TestBooks_HoldWhatHappenedAfterEachStep(t *testing.T) {
	t.Parallel()
	const steps = 100
	for _, seed := range bookSeeds(t) {
		t.Run(fmt.Sprintf("MARKET_BOOKS_SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			h := &history{shelf: newShelf(t), rand: rand.New(rand.NewPCG(seed, 0)), beside: beside{drawn: map[*booked]uuid.UUID{}}} //nolint:gosec // of a test
			loose := policy
			loose.Limit = 1_000_000
			h.recorder = h.counting(h.recorder.jobs, loose, time.Microsecond)
			h.path, h.rail, _ = h.sweeping(&fakeChain{}, &sender{})
			h.rail.Network.ChainID = 84532
			seen := map[string]int{}
			for n := range steps {
				did, b := h.step(t)
				seen[did]++
				what := fmt.Sprintf("step %d, call %s %s", n, b.d.Call, did)
				h.want(t, what, b)
				h.promised(t, what)
				if t.Failed() {
					t.FailNow()
				}
			}
			for _, b := range h.calls {
				h.want(t, "in the end", b)
			}
			if f, err := (ledger.Store{}).Check(t.Context(), h.db, 10); err != nil || !f.Sound() {
				t.Errorf("the books are not sound: %+v, %v", f, err)
			}
			t.Log(seen)
		})
	}
}
