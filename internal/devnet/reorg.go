package devnet

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

var errReorg = errors.New("the chain has no such block, or it is the first")

// Reorg takes a block back with all that follow it, and returns when the chain is longer again than it was. What they held is in none of
// the new ones unless somebody sends it again: it is gone from the pool too, with whatever else waited there. Time goes on rising, so the
// new blocks come within the pace. An owner's transaction among those that are dropped stays undone.
func (c *Chain) Reorg(ctx context.Context, from uint64) error { return c.reorg(ctx, from, nil) }

// ReorgAgainst is a Reorg in which the new blocks begin with the token blocking an account: what comes again of its payments is undone.
func (c *Chain) ReorgAgainst(ctx context.Context, from uint64, account common.Address) error {
	data, err := c.token.Pack("blocklist(address,bool)", account, true)
	if err != nil {
		return err
	}
	return c.reorg(ctx, from, data)
}

func (c *Chain) reorg(ctx context.Context, from uint64, first []byte) error {
	// The owner may send nothing meanwhile: which nonce comes next is read from what remains of the chain.
	c.ownerMu.Lock()
	defer c.ownerMu.Unlock()
	height, err := c.miner.drop(from, func() error {
		owner := crypto.PubkeyToAddress(c.owner.PublicKey)
		next, err := c.client.NonceAt(ctx, owner, nil)
		if err != nil {
			return fmt.Errorf("read the owner's nonce: %w", err)
		}
		c.ownerNonce = next
		if first == nil {
			return nil
		}
		return c.sendFirst(ctx, first)
	})
	if err != nil {
		return fmt.Errorf("take back block %d: %w", from, err)
	}
	err = c.miner.await(ctx, func() (bool, error) { return c.miner.height() >= height, nil })
	if err != nil {
		return fmt.Errorf("mine to block %d again: %w", height, err)
	}
	return nil
}

// sendFirst sends a transaction of the owner to the token at a price that puts it before everybody's. The owner's lock is held.
func (c *Chain) sendFirst(ctx context.Context, data []byte) error {
	token, chainID := TokenAddress(), big.NewInt(ChainID)
	tx, err := types.SignNewTx(c.owner, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: c.ownerNonce, Gas: gasOwner, To: &token, Data: data,
		GasTipCap: big.NewInt(500 * params.GWei), GasFeeCap: big.NewInt(feeCapOwner),
	})
	if err != nil {
		return fmt.Errorf("sign the owner's transaction: %w", err)
	}
	if err := c.client.SendTransaction(ctx, tx); err != nil {
		return fmt.Errorf("send the owner's transaction: %w", err)
	}
	c.ownerNonce++
	return nil
}

// drop makes the block below one the head, and empties the pool. then runs before a block can be sealed. It returns the
// height by which the chain is longer than it was.
func (m *miner) drop(from uint64, then func() error) (height uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.height()
	if from == 0 || from > old {
		return 0, errReorg
	}
	parent := m.eth.BlockChain().GetBlockByNumber(from - 1)
	if parent == nil {
		return 0, errReorg
	}
	if _, err := m.eth.BlockChain().SetCanonical(parent); err != nil {
		return 0, err
	}
	// The pool puts the dropped transactions back when it hears of the new head, and is emptied after that.
	if err := m.eth.TxPool().Sync(); err != nil {
		return 0, fmt.Errorf("sync the pool: %w", err)
	}
	m.beacon.Rollback()
	if err := then(); err != nil {
		return 0, err
	}
	m.wanted = max(m.wanted, old+1)
	m.hint()
	return old + 1, nil
}
