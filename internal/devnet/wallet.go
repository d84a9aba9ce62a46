package devnet

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"market/contracts"
)

// A Mood is what a contract wallet does when it is asked whether a signature is its own.
type Mood int

const (
	_              Mood = iota // no mood is meant by a forgotten value
	MoodHonest                 // it takes what its owner's key signed, and nothing else
	MoodBurning                // it takes all the gas that there is
	MoodTwoFaced               // it says yes while it is simulated and no on the chain
	MoodReentering             // it tries to move money while it is asked, and says yes
	MoodFlooding               // it answers with more than there is gas to read

	moodEnd // keep last
)

const gasWallet = 1_000_000 // twice what a deployment takes

// DeployWallet puts a contract wallet (ERC-1271) of an owner's key on the chain and returns its address.
func (c *Chain) DeployWallet(ctx context.Context, owner common.Address, mood Mood) (common.Address, error) {
	if mood < MoodHonest || mood >= moodEnd {
		return common.Address{}, fmt.Errorf("deploy a wallet: %d is no mood", mood)
	}
	wallet := contracts.Wallet()
	onChain := uint8(mood - MoodHonest) // there the honest one is 0, the value of a slot that nobody wrote
	args, err := wallet.ABI.Constructor.Inputs.Pack(owner, onChain)
	if err != nil {
		return common.Address{}, fmt.Errorf("deploy a wallet of %s: %w", owner, err)
	}
	receipt, err := c.mineAsOwner(ctx, func(nonce uint64) types.TxData {
		return &types.DynamicFeeTx{ChainID: big.NewInt(ChainID), Nonce: nonce, GasTipCap: big.NewInt(tipOwner), GasFeeCap: big.NewInt(feeCapOwner),
			Gas: gasWallet, Data: append(wallet.Creation, args...)}
	})
	if err != nil {
		return common.Address{}, fmt.Errorf("deploy a wallet of %s: %w", owner, err)
	}
	return receipt.ContractAddress, nil
}

// Delegate gives a key's account the code of a wallet (EIP-7702), or takes it back where the wallet is the zero address. The storage stays the
// account's own. nonce is the account's next one: 0 for a key that has sent and delegated nothing.
func (c *Chain) Delegate(ctx context.Context, key *ecdsa.PrivateKey, wallet common.Address, nonce uint64) error {
	account := crypto.PubkeyToAddress(key.PublicKey)
	signed, err := types.SignSetCode(key, types.SetCodeAuthorization{ChainID: *uint256.NewInt(ChainID), Address: wallet, Nonce: nonce})
	if err != nil {
		return fmt.Errorf("delegate %s: %w", account, err)
	}
	nobody := crypto.PubkeyToAddress(c.owner.PublicKey) // without code: the call itself does nothing
	_, err = c.mineAsOwner(ctx, func(nonce uint64) types.TxData {
		return &types.SetCodeTx{ChainID: uint256.NewInt(ChainID), Nonce: nonce, GasTipCap: uint256.NewInt(tipOwner), GasFeeCap: uint256.NewInt(feeCapOwner),
			Gas: gasOwner, To: nobody, Value: new(uint256.Int), AuthList: []types.SetCodeAuthorization{signed}}
	})
	if err != nil {
		return fmt.Errorf("delegate %s: %w", account, err)
	}
	code, err := c.client.CodeAt(ctx, account, nil)
	if err != nil {
		return fmt.Errorf("delegate %s: %w", account, err)
	}
	if delegated := len(code) > 0; delegated != (wallet != common.Address{}) {
		// An authorization that does not hold is skipped without a word.
		return fmt.Errorf("delegate %s: the chain did not take it", account)
	}
	return nil
}
