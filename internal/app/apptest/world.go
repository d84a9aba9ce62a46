package apptest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"market/internal/app"
	"market/internal/chain"
	"market/internal/config"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

const (
	// burst is how far the chain may run ahead of the clock, in seconds, so that tests do not wait for blocks.
	burst = 30
	// AdminToken is the admin's in every world.
	AdminToken = "a-token-of-the-tests-only"
	Patience   = 60 * time.Second // until something that has to happen counts as not happening
)

// A World is one running marketplace.
type World struct {
	App      *app.App
	Chain    *devnet.Chain
	DB       *pgxpool.Pool
	URL      string // of the door, also where a test lets callers see another one
	Treasury common.Address

	environ     []string
	databaseURL string
	conns       int
	options     []app.Option
	quiet       bool
}

// A Setup is how a marketplace differs from the usual one.
type Setup struct {
	Burst uint64 // how far the chain may run ahead of the clock, in seconds; 0: 30
	// Confirmations is the depth at which a transfer is final; 0: 2.
	Confirmations int
	// Conns is how many connections to the database a process opens for its calls; 0: 4.
	Conns   int
	Quiet   bool         // nobody reads the log: it would be long
	Options []app.Option // how the program is put together, in every replica
	// Contracts lie on the chain from the start: see devnet.Options.
	Contracts map[common.Address]types.Account
	// Prepare is called when the chain runs and the program does not yet; what it returns comes on top of the environment.
	Prepare func(t testing.TB, chain *devnet.Chain) []string
}

// Start starts a marketplace and stops it with the test. Each of env, "NAME=value", overrides what a test usually has: development mode,
// a probe that is never remembered, and no limit on refunded calls.
func Start(t testing.TB, env ...string) *World {
	t.Helper()
	return StartWith(t, Setup{}, env...)
}

// StartWith is Start for a marketplace that is put together in another way.
func StartWith(t testing.TB, setup Setup, env ...string) *World {
	t.Helper()
	w := prepare(t, setup, env...)
	w.open(t)
	return w
}

// StartFails starts a marketplace that is not to start, and returns why it did not; nil where it did.
func StartFails(t testing.TB, env ...string) error {
	t.Helper()
	return prepare(t, Setup{}, env...).start(t)
}

// prepare makes everything that a program needs, and does not start it.
func prepare(t testing.TB, setup Setup, env ...string) *World {
	t.Helper()
	databaseURL := pgtest.URL(t)
	treasuryKey, _ := NewKey(t)
	gasKey, gas := NewKey(t)
	ether := new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)
	net, err := devnet.Start(t.Context(), devnet.Options{Burst: cmp.Or(setup.Burst, burst), Alloc: map[common.Address]*big.Int{gas.Address(): ether},
		Contracts: setup.Contracts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	if setup.Prepare != nil {
		env = append(slices.Clone(env), setup.Prepare(t, net)...)
	}
	w := &World{Chain: net, options: append([]app.Option{app.WithReadyAge(readyAge)}, setup.Options...), quiet: setup.Quiet, conns: cmp.Or(setup.Conns, 4), environ: append([]string{
		"MARKET_DEV=1", "MARKET_LISTEN=127.0.0.1:0", "MARKET_OPS_LISTEN=127.0.0.1:0",
		NetworksFile(t, cmp.Or(setup.Confirmations, 2), net.URL()), "MARKET_TREASURY_KEY=" + treasuryKey, "MARKET_GAS_KEY=" + gasKey,
		"MARKET_ADMIN_TOKEN=" + AdminToken, "MARKET_PROBE_TTL=1ms", "MARKET_REFUND_LIMIT=1000000/1s", "MARKET_LOG_LEVEL=warn",
	}, env...)}
	w.on(t, databaseURL)
	return w
}

// on makes a database this world's.
func (w *World) on(t testing.TB, databaseURL string) {
	t.Helper()
	db, err := postgres.Open(t.Context(), databaseURL, func(c *pgxpool.Config) { c.MaxConns = 4 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.DB, w.databaseURL = db, databaseURL
}

// Limited returns a database's URL for a program that is to open no more than so many connections for its calls. Most tests need few, and
// the server has to start a process for each.
func Limited(t testing.TB, databaseURL string, conns int) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("pool_max_conns", strconv.Itoa(conns))
	u.RawQuery = query.Encode()
	return u.String()
}

// open starts the program. The test stops it, and it may be stopped or killed before.
func (w *World) open(t testing.TB) {
	t.Helper()
	if err := w.start(t); err != nil {
		t.Fatal(err)
	}
}

// start is open for a program that may refuse to start.
func (w *World) start(t testing.TB) error {
	t.Helper()
	c, err := config.Load(append([]string{"MARKET_DATABASE_URL=" + Limited(t, w.databaseURL, w.conns)}, w.environ...))
	if err != nil {
		t.Fatal(err)
	}
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	if w.quiet {
		log = zerolog.Nop()
	}
	a, err := app.Start(t.Context(), c, log, w.options...)
	if err != nil {
		return err
	}
	w.App, w.URL = a, a.DoorURL()
	k, err := chain.ParseKey(c.Treasury.Raw.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	w.Treasury = k.Address()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := a.Stop(ctx); err != nil && !a.Killed() {
			t.Errorf("stop: %v", err)
		}
	})
	return nil
}

// NetworksFile writes the development chain's networks file with these nodes, each a URL or an object, and returns the line of the environment that
// names it.
func NetworksFile(t testing.TB, confirmations int, nodes ...any) string {
	t.Helper()
	networks, err := json.Marshal(map[string]any{"networks": []any{map[string]any{
		"id": devnet.NetworkID, "v1_name": devnet.V1Name, "rpc": nodes, "confirmations": confirmations, "serve_at_depth": 1,
		"floor_usd": "0.001",
		"assets": []any{map[string]any{"address": devnet.TokenAddress().Hex(), "symbol": devnet.TokenSymbol,
			"decimals": devnet.TokenDecimals, "eip712_name": devnet.TokenName, "eip712_version": devnet.TokenVersion}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "networks.json")
	if err := os.WriteFile(file, networks, 0o600); err != nil {
		t.Fatal(err)
	}
	return "MARKET_NETWORKS=" + file
}

// NewKey returns a fresh key, as hex and parsed.
func NewKey(t testing.TB) (string, chain.Key) {
	t.Helper()
	raw, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	text := hexutil.Encode(crypto.FromECDSA(raw))[2:]
	key, err := chain.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return text, key
}

// readyAge is how long a world uses what it knows of its networks: many of them share a machine, and a look that was slow is no trouble of theirs.
const readyAge = 15 * time.Second

// Payer returns a fresh wallet that holds so many base units.
func (w *World) Payer(t testing.TB, units uint64) chain.Key {
	t.Helper()
	_, key := NewKey(t)
	if units > 0 {
		w.Mint(t, key.Address(), units)
	}
	return key
}

// Mint gives an account so many base units.
func (w *World) Mint(t testing.TB, to common.Address, units uint64) {
	t.Helper()
	if err := w.Chain.Mint(t.Context(), to, money.FromUnits(units)); err != nil {
		t.Fatal(err)
	}
}

// Balance reads what an account holds, in base units.
func (w *World) Balance(t testing.TB, of common.Address) uint64 {
	t.Helper()
	b, err := w.Chain.BalanceOf(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	return b.Big().Uint64()
}

// Shift moves the market's time forward.
func (w *World) Shift(t testing.TB, d time.Duration) {
	t.Helper()
	pgtest.Shift(t, w.DB, d)
}

// Admin sends a request with the admin token and returns the decoded answer.
func (w *World) Admin(t testing.TB, method, path string, body any) (int, map[string]any) {
	t.Helper()
	var in io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, in)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+AdminToken)
	answer := do(t, http.DefaultClient, r)
	return answer.Status, answer.JSON
}

// Eventually waits until something holds, looking often, and fails the test where it does not come to.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("it did not come to this: %s", what)
		case <-tick.C:
		}
	}
}

// OpenStrikes returns the strikes of a service that count, as the admin API shows them.
func (w *World) OpenStrikes(t testing.TB, slug string) []Strike {
	t.Helper()
	_, answer := w.Admin(t, http.MethodGet, "/api/v1/admin/strikes/"+slug, nil)
	var open []Strike
	items, _ := answer["items"].([]any)
	for _, item := range items {
		s, _ := item.(map[string]any)
		if s["counts"] == true {
			n, _ := s["deliveries"].(float64)
			open = append(open, Strike{ID: str(s["id"]), Deliveries: int(n)})
		}
	}
	return open
}

// A Strike is one open strike with the number of deliveries that prove it.
type Strike struct {
	ID         string
	Deliveries int
}

func str(v any) string {
	s, _ := v.(string)
	return s
}
