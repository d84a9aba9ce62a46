package devnet

import (
	"fmt"
	"maps"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/catalyst"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/p2p"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"market/contracts"
)

const (
	gasLimitBlock  = 60_000_000
	baseFeeGenesis = params.GWei
	queueAccount   = 1024 // transactions of one account that may wait for an earlier nonce
	cacheMB        = 16   // of each of the node's caches: the whole chain is in memory anyway
)

// newNode starts a node with its JSON-RPC server and the beacon that lets it seal blocks. It does what go-ethereum's package simulated
// does; that one keeps the node, and so the port that it listens on, to itself, and a port guessed beforehand may be taken by then.
func newNode(genesis *core.Genesis, port int) (*node.Node, *eth.Ethereum, *catalyst.SimulatedBeacon, error) {
	nodeConfig := node.DefaultConfig
	nodeConfig.DataDir = "" // in memory
	nodeConfig.P2P = p2p.Config{NoDiscovery: true}
	nodeConfig.HTTPHost, nodeConfig.HTTPPort = "127.0.0.1", port
	nodeConfig.HTTPModules = []string{"eth", "net", "web3", "txpool"}

	ethConfig := ethconfig.Defaults
	ethConfig.Genesis = genesis
	ethConfig.NetworkId = ChainID
	ethConfig.SyncMode = ethconfig.FullSync
	ethConfig.Miner.GasCeil = gasLimitBlock
	ethConfig.TxPool.NoLocals = true
	ethConfig.TxPool.AccountQueue, ethConfig.TxPool.GlobalQueue = queueAccount, 4*queueAccount
	ethConfig.TrieCleanCache, ethConfig.TrieDirtyCache, ethConfig.SnapshotCache = cacheMB, cacheMB, cacheMB
	ethConfig.LogNoHistory = true // eth_getLogs scans blocks: an index would lag behind the head

	stack, err := node.New(&nodeConfig)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make the node: %w", err)
	}
	backend, beacon, err := startNode(stack, &ethConfig)
	if err != nil {
		_ = stack.Close() // the first error is the one to tell
		return nil, nil, nil, err
	}
	return stack, backend, beacon, nil
}

func startNode(stack *node.Node, config *ethconfig.Config) (*eth.Ethereum, *catalyst.SimulatedBeacon, error) {
	backend, err := eth.New(stack, config)
	if err != nil {
		return nil, nil, fmt.Errorf("make the chain: %w", err)
	}
	filterSystem := filters.NewFilterSystem(backend.APIBackend, filters.Config{})
	stack.RegisterAPIs([]rpc.API{{Namespace: "eth", Service: filters.NewFilterAPI(filterSystem)}})
	if err := stack.Start(); err != nil {
		return nil, nil, fmt.Errorf("start the node: %w", err)
	}
	const byHand = 0 // no period: blocks are sealed by the miner alone
	beacon, err := catalyst.NewSimulatedBeacon(byHand, common.Address{}, backend)
	if err != nil {
		return nil, nil, fmt.Errorf("start the beacon: %w", err)
	}
	return backend, beacon, nil
}

// newGenesis places the token and what else the options name, and gives gas to the owner and to whom they name. It begins at a Unix second
// before the wall clock's, so that the first block may be mined at once.
func newGenesis(owner common.Address, opts Options, at uint64) *core.Genesis {
	config := *params.AllDevChainProtocolChanges // copied: it is shared by whatever else runs in the process
	config.ChainID = big.NewInt(ChainID)
	// These forks bring another gas schedule than Base has, and calls would cost over twice as much gas as there.
	config.BogotaTime, config.AmsterdamTime = nil, nil

	accounts := maps.Clone(core.SystemContractAllocs()) // without these no block can be built
	for address, wei := range opts.Alloc {
		accounts[address] = types.Account{Balance: new(big.Int).Set(wei)}
	}
	accounts[owner] = types.Account{Balance: ether(1_000_000_000)}
	accounts[TokenAddress()] = types.Account{
		Balance: new(big.Int),
		Nonce:   1, // as a contract that was deployed has
		Code:    contracts.Token().Runtime,
		Storage: contracts.TokenStorage(owner),
	}
	for address, account := range opts.Contracts {
		if account.Balance == nil {
			account.Balance = new(big.Int)
		}
		accounts[address] = account
	}
	return &core.Genesis{
		Config:    &config,
		Timestamp: at,
		GasLimit:  gasLimitBlock,
		BaseFee:   big.NewInt(baseFeeGenesis),
		Alloc:     accounts,
	}
}

func ether(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(params.Ether)) }
