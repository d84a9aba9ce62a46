package devnet

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/node"

	"market/contracts"
)

// The chain passes for Base Sepolia, because clients of x402 v1 know no other test network with these properties, and stock clients
// of v2 pay only in assets that they know.
const (
	ChainID   = 84532
	NetworkID = "eip155:84532" // CAIP-2
	V1Name    = "base-sepolia" // the same network for x402 v1

	TokenSymbol   = contracts.TokenSymbol
	TokenDecimals = contracts.TokenDecimals
	TokenName     = contracts.TokenName    // of the EIP-712 domain
	TokenVersion  = contracts.TokenVersion // of the EIP-712 domain
)

// genesisAge is how far before the start the chain begins, in seconds.
const genesisAge = 10

// TokenAddress is where Base Sepolia has its USDC.
func TokenAddress() common.Address {
	return common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e")
}

// Options say how a chain starts. The zero value is usable.
type Options struct {
	// Burst is how many seconds the head may get ahead of wall time, so that what is sent is mined at once. With 0 a transaction
	// waits up to a second.
	Burst uint64
	// Port is where JSON-RPC is served, on 127.0.0.1; 0 takes a free one.
	Port int
	// Alloc gives accounts ether from the start, in wei.
	Alloc map[common.Address]*big.Int
	// Contracts lie on the chain from the start, with their code and storage. One at TokenAddress takes the place of the test token: Mint then
	// needs Owner as one of its minters, and what makes the test token fail is not there.
	Contracts map[common.Address]types.Account
}

// A Chain is a running development chain. Its methods may be called by several goroutines.
type Chain struct {
	url    string
	node   *node.Node
	client *ethclient.Client // in process
	miner  *miner
	token  contracts.Contract
	owner  *ecdsa.PrivateKey // of the token; also pays for its own gas

	ownerMu    sync.Mutex // one owner transaction is signed and sent at a time
	ownerNonce uint64     // of the next one

	stop  context.CancelFunc
	close func() error
}

// Start starts a chain and returns when it has a block of the present and serves JSON-RPC. It runs until Close; the context bounds
// the start alone.
func Start(ctx context.Context, opts Options) (*Chain, error) {
	c, err := start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start the development chain: %w", err)
	}
	return c, nil
}

func start(ctx context.Context, opts Options) (*Chain, error) {
	owner, err := crypto.GenerateKey()
	if err != nil {
		return nil, fmt.Errorf("make the owner's key: %w", err)
	}
	genesis := newGenesis(crypto.PubkeyToAddress(owner.PublicKey), opts, uint64(time.Now().Unix())-genesisAge)
	stack, backend, beacon, err := newNode(genesis, opts.Port)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &Chain{
		url:    stack.HTTPEndpoint(),
		node:   stack,
		client: ethclient.NewClient(stack.Attach()),
		miner:  newMiner(backend, beacon, opts.Burst, time.Now),
		token:  contracts.Token(),
		owner:  owner,
		stop:   stop,
	}
	c.close = sync.OnceValue(c.shutdown)
	go c.miner.run(running) // shutdown waits for its end
	if err := c.Mine(ctx, 1); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close stops mining and serving; the chain is gone. Whoever still waits for a block gets ErrStopped. Closing again does nothing more.
func (c *Chain) Close() error { return c.close() }

func (c *Chain) shutdown() error {
	c.stop()
	<-c.miner.stopped // the node may not go away under a block that is being sealed
	c.client.Close()
	if err := c.node.Close(); err != nil {
		return fmt.Errorf("close the development chain: %w", err)
	}
	return nil
}

// URL is the address of JSON-RPC.
func (c *Chain) URL() string { return c.url }

// Owner is the account that mints, and that owns the test token.
func (c *Chain) Owner() common.Address { return crypto.PubkeyToAddress(c.owner.PublicKey) }

// Head returns the newest block's header.
func (c *Chain) Head(ctx context.Context) (*types.Header, error) {
	header, err := c.client.HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read the head: %w", err)
	}
	return header, nil
}

// Mine returns when the chain has so many more blocks than now. They come within the pace: at once as far as Options.Burst allows.
func (c *Chain) Mine(ctx context.Context, blocks uint64) error {
	height := c.miner.want(blocks)
	err := c.miner.await(ctx, func() (bool, error) { return c.miner.height() >= height, nil })
	if err != nil {
		return fmt.Errorf("mine to block %d: %w", height, err)
	}
	return nil
}

// Pause stops mining: what is sent stays in the pool, and no block comes. When it returns, no block is being sealed. Owner's
// transactions, such as Mint, wait meanwhile. (SetPaused pauses the token, not the chain.)
func (c *Chain) Pause() { c.miner.pause() }

// Resume lets mining go on.
func (c *Chain) Resume() { c.miner.resume() }
