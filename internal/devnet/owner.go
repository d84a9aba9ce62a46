package devnet

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"market/internal/money"
)

// ErrReverted is an owner's transaction that was mined and undone.
var ErrReverted = errors.New("the transaction reverted")

// A Lie is what the token does with a valid authorization.
type Lie int

const (
	_        Lie = iota // no lie is meant by a forgotten value
	Honest              // it moves the money: how a chain starts
	Silent              // it reports success, changes nothing and logs nothing; the nonce stays unused
	UsedOnly            // it reports success, uses the nonce and logs AuthorizationUsed, and moves nothing

	lieEnd // keep last
)

const (
	gasOwner = 200_000 // over twice what the dearest of the owner's calls takes
	// The base fee starts at 1 gwei and rises by at most an eighth with each block; it takes 58 full blocks in a row to reach the cap.
	feeCapOwner = 1000 * params.GWei
	tipOwner    = params.GWei
)

// Mint creates money and gives it to an account. Like all that follow, it returns when its transaction is mined.
func (c *Chain) Mint(ctx context.Context, to common.Address, amount money.Amount) error {
	err := c.switchToken(ctx, "mint(address,uint256)", to, amount.Big())
	if err != nil {
		return fmt.Errorf("mint %s to %s: %w", amount, to, err)
	}
	return nil
}

// FundGas sends ether to an account, in wei.
func (c *Chain) FundGas(ctx context.Context, to common.Address, wei *big.Int) error {
	if err := c.asOwner(ctx, to, wei, nil); err != nil {
		return fmt.Errorf("send %s wei to %s: %w", wei, to, err)
	}
	return nil
}

// SetBlocked says whether the token refuses to move money from or to an account.
func (c *Chain) SetBlocked(ctx context.Context, account common.Address, blocked bool) error {
	if err := c.switchToken(ctx, "blocklist(address,bool)", account, blocked); err != nil {
		return fmt.Errorf("set blocked of %s to %t: %w", account, blocked, err)
	}
	return nil
}

// SetPaused says whether the token refuses to move any money. Minting and the other switches still work.
func (c *Chain) SetPaused(ctx context.Context, paused bool) error {
	if err := c.switchToken(ctx, "pause(bool)", paused); err != nil {
		return fmt.Errorf("set paused to %t: %w", paused, err)
	}
	return nil
}

// SetLie chooses what the token does with valid authorizations from now on.
func (c *Chain) SetLie(ctx context.Context, lie Lie) error {
	if lie < Honest || lie >= lieEnd {
		return fmt.Errorf("set lie: %d is none", lie)
	}
	onChain := uint8(lie - Honest) // there the honest form is 0, the value of a slot that nobody wrote
	if err := c.switchToken(ctx, "lie(uint8)", onChain); err != nil {
		return fmt.Errorf("set lie to %d: %w", lie, err)
	}
	return nil
}

// BalanceOf returns what an account holds of the token as of the head.
func (c *Chain) BalanceOf(ctx context.Context, account common.Address) (money.Amount, error) {
	data, err := c.token.Pack("balanceOf(address)", account)
	if err != nil {
		return money.Amount{}, err
	}
	token := TokenAddress()
	answer, err := c.client.CallContract(ctx, ethereum.CallMsg{To: &token, Data: data}, nil)
	if err != nil {
		return money.Amount{}, fmt.Errorf("read the balance of %s: %w", account, err)
	}
	var balance *big.Int
	if err := c.token.ABI.UnpackIntoInterface(&balance, "balanceOf", answer); err != nil {
		return money.Amount{}, fmt.Errorf("read the balance of %s: %w", account, err)
	}
	return money.FromBig(balance)
}

func (c *Chain) switchToken(ctx context.Context, signature string, args ...any) error {
	data, err := c.token.Pack(signature, args...)
	if err != nil {
		return err
	}
	return c.asOwner(ctx, TokenAddress(), new(big.Int), data)
}

// asOwner sends a transaction of the owner through the pool, as anybody's, and returns when it is mined.
func (c *Chain) asOwner(ctx context.Context, to common.Address, wei *big.Int, data []byte) error {
	_, err := c.mineAsOwner(ctx, func(nonce uint64) types.TxData {
		return &types.DynamicFeeTx{ChainID: big.NewInt(ChainID), Nonce: nonce, GasTipCap: big.NewInt(tipOwner), GasFeeCap: big.NewInt(feeCapOwner),
			Gas: gasOwner, To: &to, Value: wei, Data: data}
	})
	return err
}

// mineAsOwner makes, sends and awaits a transaction of the owner.
func (c *Chain) mineAsOwner(ctx context.Context, build func(nonce uint64) types.TxData) (*types.Receipt, error) {
	tx, err := c.sendAsOwner(ctx, build)
	if err != nil {
		return nil, err
	}
	owner := c.Owner()
	err = c.miner.await(ctx, func() (bool, error) {
		// The nonce says for certain; a receipt that is not found may also mean that the node is still indexing.
		next, err := c.client.NonceAt(ctx, owner, nil)
		return next > tx.Nonce(), err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for transaction %s: %w", tx.Hash(), err)
	}
	receipt, err := c.client.TransactionReceipt(ctx, tx.Hash())
	if err != nil {
		return nil, fmt.Errorf("read the receipt of %s: %w", tx.Hash(), err)
	}
	if receipt.Status != types.ReceiptStatusSuccessful {
		return nil, fmt.Errorf("%w: %s", ErrReverted, tx.Hash())
	}
	return receipt, nil
}

// sendAsOwner gives out the owner's nonces in order; one that the pool refused is given out again. The pool's own count would not do:
// it lags behind what was sent.
func (c *Chain) sendAsOwner(ctx context.Context, build func(nonce uint64) types.TxData) (*types.Transaction, error) {
	c.ownerMu.Lock()
	defer c.ownerMu.Unlock()
	tx, err := types.SignNewTx(c.owner, types.LatestSignerForChainID(big.NewInt(ChainID)), build(c.ownerNonce))
	if err != nil {
		return nil, fmt.Errorf("sign the owner's transaction: %w", err)
	}
	// The call stays in the process and does not wait. Cut short, it would leave unknown whether the nonce is taken.
	if err := c.client.SendTransaction(context.WithoutCancel(ctx), tx); err != nil {
		return nil, fmt.Errorf("send the owner's transaction: %w", err)
	}
	c.ownerNonce++
	return tx, nil
}
