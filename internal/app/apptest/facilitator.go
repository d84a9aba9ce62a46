package apptest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"market/internal/app"
	"market/internal/config"
	"market/internal/postgres/pgtest"
)

// FacilitatorToken opens every facilitator of the tests.
const FacilitatorToken = "a-token-of-the-facilitator-in-tests"

// A Facilitator is a running `market facilitator`, for sellers that are not of the marketplace.
type Facilitator struct {
	Desk *app.Desk
	URL  string

	environ []string
}

// Facilitator starts a facilitator on the chain of a World, with a database and a gas key of its own. It settles to anybody. Each of env,
// "NAME=value", overrides what it usually has.
func (w *World) Facilitator(t testing.TB, env ...string) *Facilitator {
	t.Helper()
	gasKey, gas := NewKey(t)
	if err := w.Chain.FundGas(t.Context(), gas.Address(), big.NewInt(1e18)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(FacilitatorToken))
	keys, err := json.Marshal(map[string]any{"keys": []any{map[string]any{
		"name": "tests", "sha256": hex.EncodeToString(sum[:]), "recipients": []string{"*"}, "per_minute": 100_000,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, keys, 0o600); err != nil {
		t.Fatal(err)
	}
	f := &Facilitator{environ: slices.Concat([]string{
		"MARKET_DEV=1", "MARKET_LISTEN=127.0.0.1:0", "MARKET_OPS_LISTEN=127.0.0.1:0", "MARKET_DATABASE_URL=" + pgtest.URL(t),
		"MARKET_NETWORKS=" + w.Env("MARKET_NETWORKS"), "MARKET_GAS_KEY=" + gasKey, "MARKET_FACILITATOR_KEYS=" + file,
	}, env)}
	f.open(t)
	return f
}

// Restart stops the facilitator and starts it again, with the same database and keys, at another address.
func (f *Facilitator) Restart(t testing.TB) {
	t.Helper()
	f.stop(t)
	f.open(t)
}

func (f *Facilitator) open(t testing.TB) {
	t.Helper()
	c, err := config.LoadDesk(f.environ)
	if err != nil {
		t.Fatal(err)
	}
	d, err := app.StartDesk(t.Context(), c, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel))
	if err != nil {
		t.Fatal(err)
	}
	f.Desk, f.URL = d, d.DoorURL()
	t.Cleanup(func() { f.stop(t) })
}

func (f *Facilitator) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := f.Desk.Stop(ctx); err != nil {
		t.Errorf("stop the facilitator: %v", err)
	}
}
