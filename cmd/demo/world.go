package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/rs/zerolog"

	"market/cmd/demo/samples"
	"market/internal/app"
	"market/internal/chain"
	"market/internal/config"
	"market/internal/devnet"
	"market/internal/money"
)

const (
	// burst lets the chain mine a moment before its second is over, so that the demo does not wait.
	burst = 1
	// callerUnits is what the caller's wallet starts with: 10 test dollars.
	callerUnits = 10_000_000
	closeTime   = 20 * time.Second
	// cooldown is shorter than usual, so that a visitor need not wait to see the next failure.
	cooldown = "5s"
)

// A world is everything that the demo needs.
type world struct {
	dir      string
	chain    *devnet.Chain
	services *samples.Services
	app      *app.App

	treasury, gas, caller common.Address
	callerKey             string // hex; it holds test dollars of a chain that ends with the demo
	adminToken            string
}

// openWorld starts everything. What it returns has to be closed, also beside an error.
func openWorld(ctx context.Context, listen string) (*world, error) {
	w := &world{}
	var err error
	if w.dir, err = os.MkdirTemp("", "market-demo-"); err != nil {
		return w, err
	}
	// The database may run as another account, which has to get through.
	if err := os.Chmod(w.dir, 0o711); err != nil { //nolint:gosec // what is secret in it has modes of its own
		return w, err
	}
	treasuryKey, treasury, err := newKey()
	if err != nil {
		return w, err
	}
	gasKey, gas, err := newKey()
	if err != nil {
		return w, err
	}
	if w.callerKey, w.caller, err = newKey(); err != nil {
		return w, err
	}
	w.treasury, w.gas = treasury, gas
	if w.adminToken, err = newToken(); err != nil {
		return w, err
	}
	oneEther := new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)
	w.chain, err = devnet.Start(ctx, devnet.Options{Burst: burst, Alloc: map[common.Address]*big.Int{gas: oneEther}})
	if err != nil {
		return w, err
	}
	if err := w.chain.Mint(ctx, w.caller, money.FromUnits(callerUnits)); err != nil {
		return w, err
	}
	if w.services, err = samples.Start(); err != nil {
		return w, err
	}
	c, err := w.config(listen, treasuryKey, gasKey)
	if err != nil {
		return w, err
	}
	if w.app, err = app.Start(ctx, c, zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, NoColor: true}).Level(zerolog.WarnLevel)); err != nil {
		return w, err
	}
	for _, listing := range w.services.Listings() {
		if err := w.list(ctx, listing); err != nil {
			return w, err
		}
	}
	return w, nil
}

// config goes the way of every configuration: through the environment's names and a networks file.
func (w *world) config(listen, treasuryKey, gasKey string) (config.Config, error) {
	networks, err := json.Marshal(map[string]any{"networks": []any{map[string]any{
		"id": devnet.NetworkID, "v1_name": devnet.V1Name, "rpc": []string{w.chain.URL()}, "confirmations": 2, "serve_at_depth": 1,
		"floor_usd": "0.001",
		"assets": []any{map[string]any{"address": devnet.TokenAddress().Hex(), "symbol": devnet.TokenSymbol,
			"decimals": devnet.TokenDecimals, "eip712_name": devnet.TokenName, "eip712_version": devnet.TokenVersion}},
	}}})
	if err != nil {
		return config.Config{}, err
	}
	file := filepath.Join(w.dir, "networks.json")
	if err := os.WriteFile(file, networks, 0o600); err != nil {
		return config.Config{}, err
	}
	environ := []string{
		"MARKET_DEV=1", "MARKET_LISTEN=" + free(listen), "MARKET_OPS_LISTEN=127.0.0.1:0", "MARKET_DATA_DIR=" + w.dir,
		"MARKET_NETWORKS=" + file, "MARKET_TREASURY_KEY=" + treasuryKey, "MARKET_GAS_KEY=" + gasKey, "MARKET_ADMIN_TOKEN=" + w.adminToken,
		"MARKET_COOLDOWN=" + cooldown,
	}
	for _, name := range []string{"MARKET_DATABASE_URL", "PG_BIN"} {
		if value := os.Getenv(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return config.Load(environ)
}

// free returns the address if it can be listened on, and a free port of the same host otherwise.
func free(address string) string {
	l, err := net.Listen("tcp", address)
	if err == nil {
		_ = l.Close()
		return address
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address // the configuration says what is wrong with it
	}
	return net.JoinHostPort(host, "0")
}

// list puts a service on the shelf, as its provider would.
func (w *world) list(ctx context.Context, listing map[string]any) error {
	body, err := json.Marshal(listing)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.app.URL()+"/api/v1/services", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+w.adminToken)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		return fmt.Errorf("list %v: status %d: %s", listing["slug"], answer.StatusCode, text)
	}
	return nil
}

// close ends everything that was started, the marketplace first.
func (w *world) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var errs []error
	if w.app != nil {
		errs = append(errs, w.app.Stop(ctx))
	}
	if w.services != nil {
		errs = append(errs, w.services.Close(ctx))
	}
	if w.chain != nil {
		errs = append(errs, w.chain.Close())
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}

func newKey() (key string, address common.Address, err error) {
	raw, err := crypto.GenerateKey()
	if err != nil {
		return "", common.Address{}, fmt.Errorf("make a key: %w", err)
	}
	key = hexutil.Encode(crypto.FromECDSA(raw))[2:]
	parsed, err := chain.ParseKey(key)
	return key, parsed.Address(), err
}

func newToken() (string, error) {
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return hex.EncodeToString(raw), nil
}
