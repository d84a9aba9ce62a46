package crashtest

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/app/apptest"
	"market/internal/devnet"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

const (
	patience = 60 * time.Second // until something that has to happen counts as not happening
	often    = 100 * time.Millisecond
	sweep    = 15 // looks in which the sweeper has looked too
	// burst lets the chain run ahead of the clock as far as a test wants: authorizations lapse by its time.
	burst = 100_000
	grace = 60 * time.Second // in which a payment that was settled and not asked waits for its caller
	// leases is more than any lease of a call: a service gets 5 s for its answer, and the lease 30 s more.
	leases = 40 * time.Second
)

// A world is what outlives a server that dies: the database, the chain with the node that leads to it, and the services. The embedded World
// speaks to the server that runs now.
type world struct {
	*apptest.World
	node  *node
	chain *ethclient.Client // past the node
	env   []string
	ended []*stage
}

func newWorld(t testing.TB) *world {
	t.Helper()
	databaseURL := pgtest.URL(t)
	treasuryKey, treasury := apptest.NewKey(t)
	gasKey, gas := apptest.NewKey(t)
	ether := new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)
	net, err := devnet.Start(t.Context(), devnet.Options{Burst: burst, Alloc: map[common.Address]*big.Int{gas.Address(): ether}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	client, err := ethclient.DialContext(t.Context(), net.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	db, err := postgres.Open(t.Context(), databaseURL, func(c *pgxpool.Config) { c.MaxConns = 4 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := &world{
		World: &apptest.World{Chain: net, DB: db, Treasury: treasury.Address()},
		node:  newNode(t, net.URL()), chain: client,
	}
	w.env = []string{
		"MARKET_DEV=1", "MARKET_LISTEN=127.0.0.1:0", "MARKET_OPS_LISTEN=127.0.0.1:0", "MARKET_PUBLIC_URL=http://market.test",
		"MARKET_DATABASE_URL=" + apptest.Limited(t, databaseURL, 4), "MARKET_NETWORKS=" + networks(t, w.node.URL), "MARKET_TREASURY_KEY=" + treasuryKey,
		"MARKET_GAS_KEY=" + gasKey, "MARKET_ADMIN_TOKEN=" + apptest.AdminToken, "MARKET_PROBE_TTL=1ms", "MARKET_REFUND_LIMIT=1000000/1s",
		"MARKET_COOLDOWN=1h", "MARKET_GRACE=" + grace.String(),
	}
	return w
}

func networks(t testing.TB, nodeURL string) string {
	t.Helper()
	document, err := json.Marshal(map[string]any{"networks": []any{map[string]any{
		"id": devnet.NetworkID, "rpc": []string{nodeURL}, "confirmations": 2, "serve_at_depth": 1, "floor_usd": "0.001",
		"assets": []any{map[string]any{"address": devnet.TokenAddress().Hex(), "symbol": devnet.TokenSymbol,
			"decimals": devnet.TokenDecimals, "eip712_name": devnet.TokenName, "eip712_version": devnet.TokenVersion}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "networks.json")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// mine lets blocks pass on the chain.
func (w *world) mine(t testing.TB, blocks uint64) {
	t.Helper()
	if err := w.Chain.Mine(t.Context(), blocks); err != nil {
		t.Fatal(err)
	}
}

var transferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))

// transfers counts the transfers of the token from one account to another, on the chain itself.
func (w *world) transfers(t testing.TB, from, to common.Address) int {
	t.Helper()
	head, err := w.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var logs []types.Log
	err = w.chain.Client().CallContext(t.Context(), &logs, "eth_getLogs", map[string]any{
		"address": devnet.TokenAddress(), "fromBlock": "0x0", "toBlock": hexutil.EncodeBig(head.Number),
		"topics": []common.Hash{transferTopic, common.BytesToHash(from[:]), common.BytesToHash(to[:])},
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(logs)
}
