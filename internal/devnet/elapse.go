package devnet

import (
	"context"
	"fmt"
	"time"
)

// Elapse lets so many seconds pass on the chain at once: it seals one block that is so much later than its parent, for tests that wait for an
// authorization to lapse. It waits until nothing is pending, because what is sent belongs into a block of its time. Options.Burst has to allow
// the lead that the chain gets by it.
func (c *Chain) Elapse(ctx context.Context, seconds uint64) error {
	err := c.miner.await(ctx, func() (bool, error) { return c.miner.elapse(seconds) })
	if err != nil {
		return fmt.Errorf("let %d seconds pass: %w", seconds, err)
	}
	return nil
}

// elapse seals the block and says whether it did: not while something is pending, or mining is paused.
func (m *miner) elapse(seconds uint64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paused {
		return false, nil
	}
	if err := m.eth.TxPool().Sync(); err != nil {
		return false, fmt.Errorf("sync the pool: %w", err)
	}
	if pending, _ := m.eth.TxPool().Stats(); pending > 0 {
		return false, nil
	}
	wall, head := uint64(m.now().Unix()), m.eth.BlockChain().CurrentBlock()
	if at := max(head.Time, m.time) + seconds; at > wall+m.burst {
		return false, fmt.Errorf("that is %d s ahead of the clock, and %d is allowed", at-wall, m.burst)
	}
	if err := m.beacon.AdjustTime(time.Duration(seconds) * time.Second); err != nil { //nolint:gosec // the burst bounds it
		return false, fmt.Errorf("seal a block on %s: %w", head.Number, err)
	}
	m.sealed(wall)
	return true, nil
}
