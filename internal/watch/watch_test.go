package watch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/money"
	"market/internal/notify"
	"market/internal/postgres/pgtest"
	"market/internal/pulse"
	"market/internal/replica"
)

// at once tells what it sees in the first look.
var atOnce = Pace{Look: time.Hour, Deep: time.Hour}

// A process is one of a fleet, as a watch sees it.
type member struct {
	*Watch
	db    *pgxpool.Pool
	why   error // for which the network is not ready
	tries delivery.Tries
	clock time.Duration // ahead
	told  []Change
}

func newMember(t *testing.T, db *pgxpool.Pool, change func(*Config)) *member {
	t.Helper()
	m := &member{db: db}
	c := Config{
		DB: db, Self: uuid.Must(uuid.NewV7()), Address: "127.0.0.1:4021", Loops: pulse.New(time.Now, nil), Pace: atOnce,
		Ready:   func(context.Context) map[string]error { return map[string]error{network.ID: m.why} },
		Tries:   func() delivery.Tries { return m.tries },
		Clock:   func() time.Time { return time.Now().Add(m.clock) },
		Tell:    func(c Change) { m.told = append(m.told, c) },
		OnError: func(err error) { t.Error(err) },
	}
	if change != nil {
		change(&c)
	}
	m.Watch = New(c)
	return m
}

// beat says that the process runs.
func (m *member) beat(t *testing.T) {
	t.Helper()
	if err := (replica.Store{}).Beat(t.Context(), m.db, m.Self, m.Address); err != nil {
		t.Fatal(err)
	}
}

// heardLast puts back when this process heard last what the other one saw.
func (m *member) heardLast(of *member, ago time.Duration) {
	last := m.look.heard[of.Self]
	last.since = time.Now().Add(-ago)
	m.look.heard[of.Self] = last
}

// look lets all processes beat and look, in their order.
func look(t *testing.T, fleet ...*member) {
	t.Helper()
	for _, m := range fleet {
		m.beat(t)
	}
	for _, m := range fleet {
		if err := m.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// wantNotices compares the open notices of a kind, and how many changes all processes told of.
func wantNotices(t *testing.T, when string, db *pgxpool.Pool, kind notify.Kind, want, changes int, fleet ...*member) {
	t.Helper()
	open, err := notify.Store{}.OpenSubjects(t.Context(), db, notify.Conditions())
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, m := range fleet {
		for _, c := range m.told {
			if c.Kind == kind {
				told++
			}
		}
	}
	if len(open[kind]) != want || told != changes {
		t.Errorf("%s: %d notices of %s are open and %d changes told, want %d and %d", when, len(open[kind]), kind, told, want, changes)
	}
}

func TestWatch_OfTwoProcessesThatDisagreeTheOneInTroubleIsTold(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	well, ill := newMember(t, db, nil), newMember(t, db, nil)
	fleet := []*member{well, ill}
	look(t, fleet...)
	wantNotices(t, "all is well", db, notify.NetworkNotReady, 0, 0, fleet...)
	ill.why = errors.New("node: HTTP status 500")
	for range 3 {
		look(t, fleet...)
		wantNotices(t, "one says no", db, notify.NetworkNotReady, 1, 1, fleet...)
	}
	well.why = ill.why
	look(t, fleet...)
	ill.why = nil
	look(t, fleet...)
	wantNotices(t, "the other one says no", db, notify.NetworkNotReady, 1, 1, fleet...)
	well.why = nil
	look(t, fleet...)
	look(t, fleet...)
	wantNotices(t, "all say yes", db, notify.NetworkNotReady, 0, 2, fleet...)
}

// A heartbeat can be late: what the process sees is not over by that.
func TestWatch_WhoMissesABeatTakesNoTroubleAway(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	well, ill := newMember(t, db, nil), newMember(t, db, nil)
	ill.why = errors.New("node: HTTP status 500")
	look(t, well, ill)
	pgtest.Shift(t, db, replica.AliveFor)
	look(t, well)
	wantNotices(t, "a beat is missed", db, notify.NetworkNotReady, 1, 1, well, ill)
	look(t, well, ill)
	look(t, well, ill)
	wantNotices(t, "it beats again", db, notify.NetworkNotReady, 1, 1, well, ill)
	pgtest.Shift(t, db, replica.AliveFor)
	look(t, well)
	look(t, well)
	wantNotices(t, "it is gone", db, notify.NetworkNotReady, 0, 2, well, ill)
}

func TestWatch_PaymentsThatFailOnAllProcessesAreOneTrouble(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	one, two := newMember(t, db, nil), newMember(t, db, nil)
	one.tries = delivery.Tries{Failed: 2, Payers: payers[:1]}
	two.tries = delivery.Tries{Failed: 2, Payers: payers[1:]}
	look(t, one, two)
	look(t, one, two)
	wantNotices(t, "four failed", db, notify.NothingSettles, 0, 0, one, two)
	two.tries.Failed = 3
	look(t, one, two)
	look(t, one, two)
	wantNotices(t, "five failed", db, notify.NothingSettles, 1, 1, one, two)
	one.tries, two.tries = delivery.Tries{}, delivery.Tries{}
	look(t, one, two)
	look(t, one, two)
	wantNotices(t, "nobody tries", db, notify.NothingSettles, 1, 1, one, two)
	one.tries = delivery.Tries{Settled: 1}
	look(t, one, two)
	look(t, one, two)
	wantNotices(t, "one settled", db, notify.NothingSettles, 0, 2, one, two)
}

func TestWatch_AWrongClockIsTold(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	m := newMember(t, db, nil)
	pgtest.Shift(t, db, time.Hour) // the market's time is nobody's clock
	for range 2 {                  // the clocks are compared in one look, and judged in the next
		look(t, m)
	}
	wantNotices(t, "a right clock", db, notify.ClockApart, 0, 0, m)
	m.clock = -time.Minute
	look(t, m)
	look(t, m)
	wantNotices(t, "a wrong clock", db, notify.ClockApart, 1, 1, m)
	m.clock = 0
	for range 3 {
		look(t, m)
	}
	wantNotices(t, "a clock that was put right", db, notify.ClockApart, 0, 2, m)
}

// The watch itself is watched by the others.
func TestWatch_AProcessThatBeatsAndDoesNotLookIsToldByAnother(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	well, hangs := newMember(t, db, nil), newMember(t, db, nil)
	look(t, well, hangs)
	pgtest.Shift(t, db, time.Hour) // it has not looked since, and had no time to
	hangs.beat(t)
	look(t, well)
	wantNotices(t, "the database's clock was put forward", db, notify.WorkStopped, 0, 0, well, hangs)
	well.heardLast(hangs, silentAfter+time.Second)
	hangs.beat(t)
	look(t, well)
	wantNotices(t, "it has not looked for two minutes", db, notify.WorkStopped, 1, 1, well, hangs)
	for range 4 { // it is read, seen no more, and found away twice
		look(t, well, hangs)
	}
	wantNotices(t, "it looks again", db, notify.WorkStopped, 0, 2, well, hangs)
}

// While the database is away nobody can write that it looks, and nobody could read it.
func TestWatch_AfterADatabaseOutageNoOtherProcessIsTakenForSilent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first, second := newMember(t, db, nil), newMember(t, db, nil)
	look(t, first, second)
	look(t, first, second)
	away, cancel := context.WithCancel(t.Context())
	cancel()
	first.heardLast(second, silentAfter+time.Second)
	if err := first.Look(away); err == nil {
		t.Fatal("it could look without a database")
	}
	first.beat(t)
	second.beat(t) // it beats before it looks
	look(t, first)
	wantNotices(t, "the database is back, and the second has not looked yet", db, notify.WorkStopped, 0, 0, first, second)
	first.heardLast(second, silentAfter+time.Second)
	look(t, first)
	wantNotices(t, "it does not look for two minutes after that", db, notify.WorkStopped, 1, 1, first, second)
}

func TestWatch_WorkThatHangsIsToldWithItsProcess(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var (
		begun   = time.Now()
		passed  atomic.Int64
		running sync.WaitGroup
		release = make(chan struct{})
		beaten  = make(chan struct{})
	)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); running.Wait() })
	loops := pulse.New(func() time.Time { return begun.Add(time.Duration(passed.Load())) }, nil)
	loops.Go(ctx, &running, "sweeper", func(ctx context.Context) {
		select {
		case <-release:
		case <-ctx.Done():
			return
		}
		pulse.Beat(ctx, time.Second)
		close(beaten)
		<-ctx.Done()
	})
	well, hangs := newMember(t, db, nil), newMember(t, db, func(c *Config) { c.Loops = loops })
	look(t, well, hangs)
	wantNotices(t, "it has just begun", db, notify.WorkStopped, 0, 0, well, hangs)
	passed.Store(int64(6 * time.Minute))
	for range 3 {
		look(t, well, hangs)
	}
	wantNotices(t, "it hangs", db, notify.WorkStopped, 1, 1, well, hangs)
	for _, m := range []*member{well, hangs} {
		for _, c := range m.told {
			if !strings.Contains(c.Text, "sweeper") || !strings.Contains(c.Text, hangs.Self.String()) {
				t.Errorf("it is not said what hangs, and where: %s", c.Text)
			}
		}
	}
	close(release)
	<-beaten
	for range 4 {
		look(t, well, hangs)
	}
	wantNotices(t, "it came round", db, notify.WorkStopped, 0, 2, well, hangs)
}

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
