package conformance

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/rs/zerolog"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/config"
	"market/internal/devnet"
	"market/internal/postgres/pgtest"
)

// A desk is our facilitator, running, with a chain and one API key.
type desk struct {
	*apptest.World // of a chain alone, without a market; its treasury is the seller, the one recipient that the key allows
	url, token     string
	gas            common.Address // sends the transactions
}

func openDesk(t *testing.T) desk {
	t.Helper()
	gasKey, gas := apptest.NewKey(t)
	chain, err := devnet.Start(t.Context(), devnet.Options{Burst: 10, Alloc: map[common.Address]*big.Int{gas.Address(): big.NewInt(params.Ether)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	_, payTo := apptest.NewKey(t)
	d := desk{World: &apptest.World{Chain: chain, Treasury: payTo.Address()}, token: rand.Text(), gas: gas.Address()}
	c, err := config.LoadDesk([]string{
		"MARKET_DEV=1", "MARKET_LISTEN=127.0.0.1:0", "MARKET_OPS_LISTEN=127.0.0.1:0", "MARKET_LOG_LEVEL=warn", "MARKET_DATABASE_URL=" + pgtest.URL(t),
		"MARKET_GAS_KEY=" + gasKey, "MARKET_NETWORKS=" + apptest.NetworksFile(t, chain, 2), "MARKET_FACILITATOR_KEYS=" + d.keysFile(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	running, err := app.StartDesk(t.Context(), c, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	d.url = running.DoorURL()
	return d
}

func (d desk) keysFile(t *testing.T) string {
	t.Helper()
	hash := sha256.Sum256([]byte(d.token))
	raw, err := json.Marshal(map[string]any{"keys": []any{map[string]any{
		"name": "shop", "sha256": hex.EncodeToString(hash[:]), "recipients": []string{d.Treasury.Hex()}, "per_minute": 600,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A seller is an official middleware that sells through our facilitator, and the client that buys there.
type seller struct {
	desk
	*node
	client client
	shop   string // its URL
}

// sellers are the official ones, by package: their script, who buys there, and in which words of their version a payment is refused.
var sellers = map[string]struct {
	script, client   string
	unfunded, replay string
}{
	"@x402/express": {"express.mjs", "@x402/fetch", "invalid_exact_evm_insufficient_balance", "invalid_exact_evm_nonce_already_used"},
	"x402-express":  {"v1/express.mjs", "x402-fetch", "insufficient_funds", "invalid_transaction_state"},
}

// newSeller tries an official middleware that has its payments verified and settled by our facilitator.
func newSeller(t *testing.T, peer string) bench {
	t.Helper()
	name, _, _ := strings.Cut(peer, " ")
	of, known := sellers[name]
	if !known {
		t.Fatalf("nobody knows how to sell with %s", name)
	}
	s := seller{desk: openDesk(t), node: start(t, of.script), client: clients[of.client](t)}
	var shop struct{ URL string }
	s.do(t, "listen", job{"facilitator": s.url, "token": s.token, "payTo": s.Treasury.Hex(), "price": "$0.002"}, &shop)
	s.shop = shop.URL
	return bench{
		"served":       s.sells,
		"replay":       func(t *testing.T) { s.meetsAReplay(t, of.replay) },
		"empty wallet": func(t *testing.T) { s.meetsAnEmptyWallet(t, of.unfunded) },
		"not charged":  s.fails,
	}
}

// buy is one call by the client.
func (s seller) buy(t *testing.T, p payer, path string) seen {
	t.Helper()
	var got seen
	s.client.do(t, "call", job{"key": p.key, "url": s.shop + path, "method": http.MethodGet}, &got)
	return got
}

// ran checks how often the handler of a path has run.
func (s seller) ran(t *testing.T, path string, times int) {
	t.Helper()
	var asked struct{ Times int }
	s.do(t, "asked", job{"path": path}, &asked)
	if asked.Times != times {
		t.Errorf("the handler ran %d times, want %d", asked.Times, times)
	}
}

func (s seller) sells(t *testing.T) {
	const path = "/work?as=served"
	p := fund(t, s.World, funds)
	got := s.buy(t, p, path)
	if got.Status != http.StatusOK || got.Body != `{"done":true}` {
		t.Fatalf("got %s", got)
	}
	s.client.paidOnce(t, got)
	s.client.settled(t, s.World, got, p, apptest.PriceUnits)
	s.ran(t, path, 1)
	if from := sender(t, s.Chain, got.Receipt.Transaction); from != s.gas {
		t.Errorf("%s sent the transaction, want our gas account %s", from, s.gas)
	}
}

func (s seller) meetsAReplay(t *testing.T, reason string) {
	const path = "/work?as=replay"
	p := fund(t, s.World, funds)
	first := s.buy(t, p, path)
	if first.Status != http.StatusOK {
		t.Fatalf("the first call got %s", first)
	}
	s.client.paidOnce(t, first)
	var again seen
	s.client.do(t, "send", job{"url": s.shop + path, "method": http.MethodGet, "headers": first.Sent[1]}, &again)
	if again.Status != http.StatusPaymentRequired || again.Reason != reason {
		t.Errorf("the same payment again got %s, want 402 with %s", again, reason)
	}
	s.client.settled(t, s.World, first, p, apptest.PriceUnits)
	s.ran(t, path, 1)
}

func (s seller) meetsAnEmptyWallet(t *testing.T, reason string) {
	const path = "/work?as=empty"
	p := fund(t, s.World, 0)
	got := s.buy(t, p, path)
	if got.Status != http.StatusPaymentRequired || got.Reason != reason {
		t.Errorf("got %s, want 402 with %s", got, reason)
	}
	s.client.paidOnce(t, got)
	unpaid(t, s.World, p)
	s.ran(t, path, 0)
}

func (s seller) fails(t *testing.T) {
	const path = "/broken?as=fails"
	p := fund(t, s.World, funds)
	got := s.buy(t, p, path)
	if got.Status != http.StatusInternalServerError || got.Receipt != nil {
		t.Errorf("got %s, want the handler's own failure without a receipt", got)
	}
	s.client.paidOnce(t, got)
	unpaid(t, s.World, p)
	s.ran(t, path, 1)
}

// sender is who sent a transaction, and so paid its gas.
func sender(t *testing.T, chain *devnet.Chain, hash string) common.Address {
	t.Helper()
	client, err := ethclient.DialContext(t.Context(), chain.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tx, _, err := client.TransactionByHash(t.Context(), common.HexToHash(hash))
	if err != nil {
		t.Fatal(err)
	}
	from, err := types.Sender(types.LatestSignerForChainID(big.NewInt(devnet.ChainID)), tx)
	if err != nil {
		t.Fatal(err)
	}
	return from
}
