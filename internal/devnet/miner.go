package devnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/catalyst"
)

// ErrStopped is the answer to whoever waits for a block of a chain that mines no more: it was closed, or a block could not be sealed.
var ErrStopped = errors.New("the development chain has stopped")

// A miner seals blocks at the pace that the package comment describes. It is the only user of its beacon, which is not safe for several.
type miner struct {
	eth    *eth.Ethereum
	beacon *catalyst.SimulatedBeacon
	burst  uint64 // seconds
	now    func() time.Time

	wake    chan struct{} // one buffered hint that something may have changed
	stopped chan struct{} // closed when run has returned

	mu     sync.Mutex // held while a block is sealed
	paused bool
	wanted uint64        // the height that callers of Mine asked for
	mined  uint64        // wall time of the last block, Unix seconds
	time   uint64        // chain time of the last block, whether or not it still stands; the next one is later
	block  chan struct{} // closed and replaced with each block
	failed error         // why run gave up, other than its context
}

func newMiner(backend *eth.Ethereum, beacon *catalyst.SimulatedBeacon, burst uint64, now func() time.Time) *miner {
	return &miner{
		eth: backend, beacon: beacon, burst: burst, now: now,
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		block:   make(chan struct{}),
	}
}

// run mines until the context ends or a block cannot be sealed.
func (m *miner) run(ctx context.Context) {
	defer close(m.stopped)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { m.listen(ctx) })

	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		sealed, err := m.step()
		if err != nil {
			m.fail(err)
			return
		}
		if sealed {
			continue
		}
		now := m.now()
		timer.Reset(now.Truncate(time.Second).Add(time.Second).Sub(now)) // what the pace forbids now it may allow then
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer.C:
		}
	}
}

// listen turns events of the pool into hints. It has a goroutine of its own because the pool waits for its listeners, and the miner
// waits for the pool.
func (m *miner) listen(ctx context.Context) {
	txs := make(chan core.NewTxsEvent, 16)
	sub := m.eth.TxPool().SubscribeTransactions(txs, true)
	defer sub.Unsubscribe()
	m.hint() // for what came before the subscription
	for {
		select {
		case <-txs:
			m.hint()
		case <-sub.Err():
			return
		case <-ctx.Done():
			return
		}
	}
}

func (m *miner) hint() {
	select {
	case m.wake <- struct{}{}:
	default: // a hint is already waiting
	}
}

// step seals at most one block and says whether it did.
func (m *miner) step() (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paused {
		return false, nil
	}
	// The pool drops what the last block took only when it gets to it; until then it would count that as still pending.
	if err := m.eth.TxPool().Sync(); err != nil {
		return false, fmt.Errorf("sync the pool: %w", err)
	}
	pending, _ := m.eth.TxPool().Stats()
	head := m.eth.BlockChain().CurrentBlock()
	p := pace{
		wall:    uint64(m.now().Unix()),
		head:    max(head.Time, m.time),
		mined:   m.mined,
		waiting: pending > 0 || head.Number.Uint64() < m.wanted,
	}
	if !p.mayMine(m.burst) {
		return false, nil
	}
	// The beacon reads the clock again. A later second can only shorten the lead.
	if hash := m.beacon.Commit(); hash == head.Hash() {
		return false, fmt.Errorf("seal a block on %s: the head did not move", head.Number)
	}
	m.sealed(p.wall)
	return true, nil
}

// sealed notes that a block was sealed at this wall time, and wakes who waits for it.
func (m *miner) sealed(wall uint64) {
	m.mined, m.time = wall, m.eth.BlockChain().CurrentBlock().Time
	close(m.block)
	m.block = make(chan struct{})
}

// pause returns when no block is being sealed, and none will be before resume.
func (m *miner) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = true
}

func (m *miner) resume() {
	m.mu.Lock()
	m.paused = false
	m.mu.Unlock()
	m.hint()
}

// want asks for so many more blocks and returns the height that the chain will then have at least.
func (m *miner) want(blocks uint64) uint64 {
	m.mu.Lock()
	height := m.height() + blocks
	m.wanted = max(m.wanted, height)
	m.mu.Unlock()
	m.hint()
	return height
}

func (m *miner) height() uint64 { return m.eth.BlockChain().CurrentBlock().Number.Uint64() }

func (m *miner) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = err
}

// await returns once done says true, asking again after each block.
func (m *miner) await(ctx context.Context, done func() (bool, error)) error {
	for {
		m.mu.Lock()
		block := m.block // taken before asking, so that a block sealed meanwhile is not missed
		m.mu.Unlock()
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-block:
		case <-ctx.Done():
			return ctx.Err()
		case <-m.stopped:
			m.mu.Lock()
			defer m.mu.Unlock()
			return errors.Join(ErrStopped, m.failed)
		}
	}
}
