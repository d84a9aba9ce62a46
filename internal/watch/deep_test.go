package watch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/facilitator"
	"market/internal/money"
	"market/internal/notify"
	"market/internal/postgres/pgtest"
)

// A purse is a node and an engine that say what a test wants.
type purse struct {
	mu    sync.Mutex
	holds uint64
	gone  bool // the node does not answer
	left  bool // every refund that was sent has left
	asked int
	pays  int64
}

var errNode = errors.New("node: timeout")

func (p *purse) Account(context.Context, common.Address, common.Address, common.Hash) (chain.AccountState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return chain.AccountState{}, errNode
	}
	return chain.AccountState{Balance: money.FromUnits(p.holds)}, nil
}

func (p *purse) Used(_ context.Context, _, _ common.Address, nonces []common.Hash) ([]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	used := make([]bool, len(nonces))
	for i := range used {
		used[i] = p.left
	}
	return used, nil
}

func (p *purse) Gas(context.Context) (facilitator.Gas, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return facilitator.Gas{}, errNode
	}
	return facilitator.Gas{Balance: money.FromUnits(1).Big(), Transactions: p.pays, Least: 20}, nil
}

// What a node does not say leaves what it said before: a timeout is no news of money.
func TestWatch_ANodeThatDoesNotAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	p := &purse{pays: 499}
	m := newMember(t, db, func(c *Config) { c.Networks = []Network{{Network: network.Network, Node: p, Engine: p}} })
	deep := func(wantErr bool) {
		t.Helper()
		if err := m.LookDeep(t.Context()); (err != nil) != wantErr {
			t.Fatalf("a deep look: %v", err)
		}
		look(t, m)
		look(t, m)
	}
	deep(false)
	wantNotices(t, "gas is low", db, notify.GasLow, 1, 1, m)
	p.gone = true
	deep(true)
	wantNotices(t, "the node is away", db, notify.GasLow, 1, 1, m)
	p.gone, p.pays = false, 999
	deep(false)
	wantNotices(t, "there is a little more", db, notify.GasLow, 1, 1, m)
	p.pays = 1000
	deep(false)
	wantNotices(t, "there is enough", db, notify.GasLow, 0, 2, m)
}

// The processes of a deploy take the place of those that saw the trouble, and have seen nothing of it themselves.
func TestWatch_ADeployEndsNoTroubleThatHolds(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	p := &purse{pays: 499}
	change := func(c *Config) { c.Networks = []Network{{Network: network.Network, Node: p, Engine: p}} }
	looks := func(m *member, wantErr bool) {
		t.Helper()
		if err := m.LookDeep(t.Context()); (err != nil) != wantErr {
			t.Fatalf("a deep look: %v", err)
		}
		for range 3 {
			look(t, m)
		}
	}
	old := newMember(t, db, change)
	id := oweRefund(t, db, common.Address{0xaa}, 1000, "owed", "")
	pgtest.Shift(t, db, lateLimit(network.Confirmations))
	looks(old, false)
	for _, kind := range []notify.Kind{notify.GasLow, notify.TreasuryShort, notify.RefundsLate} {
		wantNotices(t, "before the deploy", db, kind, 1, 1, old)
	}

	pgtest.Shift(t, db, time.Hour) // the old one beats no more
	young := newMember(t, db, change)
	p.gone = true
	look(t, young)
	look(t, young)
	looks(young, true)
	for _, kind := range []notify.Kind{notify.GasLow, notify.TreasuryShort, notify.RefundsLate} {
		wantNotices(t, "the node does not answer", db, kind, 1, 0, young)
	}
	pgtest.Shift(t, db, time.Hour)
	young = newMember(t, db, change)
	p.gone, p.pays = false, 999
	if _, err := db.Exec(t.Context(), `UPDATE refunds SET owed_at = market_now() - $1::interval`, lateLimit(network.Confirmations)*3/4); err != nil {
		t.Fatal(err)
	}
	looks(young, false)
	for _, kind := range []notify.Kind{notify.GasLow, notify.TreasuryShort, notify.RefundsLate} {
		wantNotices(t, "it is a little better", db, kind, 1, 0, young)
	}
	p.pays = 1000
	if _, err := db.Exec(t.Context(), `UPDATE refunds SET state = 'void' WHERE call_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	looks(young, false)
	for _, kind := range []notify.Kind{notify.GasLow, notify.TreasuryShort, notify.RefundsLate} {
		wantNotices(t, "it is over, and a treasury that owes nothing is short of nothing", db, kind, 0, 1, young)
	}
}

// A stuck node answers nothing for as long as a look may take.
type stuck struct {
	*purse
	timeout context.CancelFunc
}

func (s *stuck) Gas(ctx context.Context) (facilitator.Gas, error) {
	s.timeout()
	return facilitator.Gas{}, ctx.Err()
}

func TestWatch_ANodeThatHangsKeepsNoRefundAndNoJobFromBeingLookedAt(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	looking, timeout := context.WithCancel(t.Context())
	t.Cleanup(timeout)
	m := newMember(t, db, func(c *Config) {
		c.Networks = []Network{{Network: network.Network, Node: &purse{holds: 1_000_000}, Engine: &stuck{timeout: timeout}}}
	})
	oweRefund(t, db, common.Address{0xaa}, 1000, "owed", "")
	pgtest.Shift(t, db, time.Hour)
	ended(t, db, "discarded", "mail", 6*time.Minute)
	if err := m.LookDeep(looking); err == nil {
		t.Fatal("the node answered")
	}
	look(t, m)
	wantNotices(t, "a refund is late", db, notify.RefundsLate, 1, 1, m)
	wantNotices(t, "a job was given up", db, notify.JobDiscarded, 1, 1, m)
}

// Refunds that have left and are not final are owed in the books alone.
func TestWatch_ARefundOnItsWayIsNotMissedTwice(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	treasury := common.Address{0xaa}
	oweRefund(t, db, treasury, 1000, "sent", "")
	p := &purse{holds: 0, left: true, pays: 10_000}
	m := newMember(t, db, func(c *Config) { c.Networks = []Network{{Network: network.Network, Node: p}} })
	lookTwice := func() {
		t.Helper()
		if err := m.LookDeep(t.Context()); err != nil {
			t.Fatal(err)
		}
		look(t, m)
		look(t, m)
	}
	lookTwice()
	wantNotices(t, "it has left", db, notify.TreasuryShort, 0, 0, m)
	p.left = false
	lookTwice()
	wantNotices(t, "it has not left, and there is nothing to pay it with", db, notify.TreasuryShort, 1, 1, m)
	p.holds = 1000
	lookTwice()
	wantNotices(t, "there is", db, notify.TreasuryShort, 0, 2, m)
	if p.asked != 2 {
		t.Errorf("the node was asked %d times what has left, want twice: when the treasury looked short", p.asked)
	}
}

// Nobody's refund waits for ever without a word.
func TestWatch_RefundsThatAreOwedForTooLongAreToldUntilNoneIs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	p := &purse{holds: 1_000_000, pays: 10_000}
	members := []*member{}
	for range 2 {
		members = append(members, newMember(t, db, func(c *Config) { c.Networks = []Network{{Network: network.Network, Node: p}} }))
	}
	deep := func() {
		t.Helper()
		for _, m := range members {
			if err := m.LookDeep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		look(t, members...)
		look(t, members...)
	}
	id := oweRefund(t, db, common.Address{0xaa}, 1000, "parked", "the token refused it")
	limit := lateLimit(network.Confirmations)
	pgtest.Shift(t, db, limit-time.Minute)
	deep()
	wantNotices(t, "within the limit", db, notify.RefundsLate, 0, 0, members...)
	pgtest.Shift(t, db, time.Minute)
	deep()
	wantNotices(t, "beyond it", db, notify.RefundsLate, 1, 1, members...)
	if _, err := db.Exec(t.Context(), `UPDATE refunds SET state = 'void' WHERE call_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	oweRefund(t, db, common.Address{0xaa}, 1000, "owed", "")
	pgtest.Shift(t, db, limit*3/4)
	deep()
	wantNotices(t, "the next one is near it", db, notify.RefundsLate, 1, 1, members...)
	if _, err := db.Exec(t.Context(), `UPDATE refunds SET state = 'void'`); err != nil {
		t.Fatal(err)
	}
	deep()
	deep()
	wantNotices(t, "none is owed", db, notify.RefundsLate, 0, 2, members...)
}

// That a source is out was told with all that waits for it: as long as that notice is open, it is the one of that trouble.
func TestWatch_ARefundThatWaitsForASourceIsLateOnceTheSourceIsToldOfNoMore(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	m := newMember(t, db, func(c *Config) { c.Networks = []Network{{Network: network.Network, Node: &purse{holds: 1_000_000}}} })
	id := oweRefund(t, db, common.Address{0xaa}, 1000, "owed", "")
	if _, err := db.Exec(t.Context(), `UPDATE refunds SET waits_for = 'facilitator/hosted' WHERE call_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	if _, err := m.store.Raise(t.Context(), db, notify.SourceOut, "facilitator/hosted", notify.Outage{What: "it is out", Effect: "refunds wait", Look: "/admin/sources"}); err != nil {
		t.Fatal(err)
	}
	deep := func() {
		t.Helper()
		if err := m.LookDeep(t.Context()); err != nil {
			t.Fatal(err)
		}
		look(t, m)
	}
	pgtest.Shift(t, db, 9*24*time.Hour)
	deep()
	wantNotices(t, "nine days later", db, notify.RefundsLate, 0, 0, m)
	if _, err := m.store.SettleSteady(t.Context(), db, notify.SourceOut, "facilitator/hosted"); err != nil {
		t.Fatal(err)
	}
	deep()
	wantNotices(t, "the source works again, and the refund still waits", db, notify.RefundsLate, 1, 1, m)
}
