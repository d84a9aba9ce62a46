package app_test

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/devnet"
)

// networksAt writes a networks file of chains that all are behind one URL.
func networksAt(t *testing.T, url string, chains ...map[string]any) string {
	t.Helper()
	var all []any
	for _, c := range chains {
		network := map[string]any{"id": devnet.NetworkID, "rpc": []string{url}, "confirmations": 2, "serve_at_depth": 1, "floor_usd": "0.001", "assets": []any{map[string]any{
			"address": devnet.TokenAddress().Hex(), "symbol": devnet.TokenSymbol, "decimals": devnet.TokenDecimals, "eip712_name": devnet.TokenName, "eip712_version": devnet.TokenVersion}}}
		for member, value := range c {
			network[member] = value
		}
		all = append(all, network)
	}
	text, err := json.Marshal(map[string]any{"networks": all})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "networks.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "MARKET_NETWORKS=" + file
}

// Whatever is a lie is told at once, one sentence each, so that the operator corrects it in one go.
func TestStart_RefusesEveryLieAndTellsAllOfThemAtOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "bought", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	caller := w.Plain(t, apptest.PriceUnits)
	if a := w.Send(t, ask, w.SignAs(t, caller, w.Challenge(t, ask), nil)); a.Status != http.StatusOK {
		t.Fatalf("a call: %d %s", a.Status, a.Body)
	}
	wallet := w.Wallet(t, 0, devnet.MoodHonest)
	delegated := w.Delegated(t, 0, wallet.Address)
	key := func(of apptest.Wallet) string { return hex.EncodeToString(crypto.FromECDSA(of.Owner)) }
	token := map[string]any{"address": devnet.TokenAddress().Hex(), "symbol": "USDC", "decimals": 18, "eip712_name": devnet.TokenName, "eip712_version": devnet.TokenVersion}
	hosted := apptest.NewHosted(t, strings.ReplaceAll(apptest.SupportsUs, "84532", "8453"), nil)
	for name, tt := range map[string]struct {
		env  []string
		want []string
	}{
		"networks": {[]string{networksAt(t, w.Chain.URL(), map[string]any{"id": "eip155:8453"}, map[string]any{"assets": []any{token}}), "MARKET_GAS_KEY=" + w.Env("MARKET_TREASURY_KEY")},
			[]string{"eip155:8453: RPC endpoint 1 serves chain 84532, want 8453", `decimals: the contract says "6", configured is "18"`,
				"MARKET_GAS is the key of a treasury (MARKET_TREASURY, " + w.Treasury.Hex()}},
		"another domain": {[]string{networksAt(t, w.Chain.URL(), map[string]any{"assets": []any{map[string]any{"address": devnet.TokenAddress().Hex(), "symbol": "USDC",
			"decimals": devnet.TokenDecimals, "eip712_name": "USD Coin", "eip712_version": devnet.TokenVersion}}})},
			[]string{`eip712_name: the contract says "` + devnet.TokenName + `", configured is "USD Coin"`}},
		"a caller's wallet": {[]string{"MARKET_TREASURY_KEY=" + key(caller)}, []string{"MARKET_TREASURY is the key of " + caller.Address.Hex() + ", which has paid for calls here"}},
		"wallets with code": {[]string{"MARKET_TREASURY_KEY=" + key(delegated), "MARKET_TREASURY_RETIRED_KEYS=" + w.Env("MARKET_TREASURY_KEY")},
			[]string{"MARKET_TREASURY is the key of " + delegated.Address.Hex() + ", which is a contract on " + devnet.NetworkID}},
		"a gas key with code": {[]string{"MARKET_GAS_KEY=" + key(delegated)},
			[]string{"MARKET_GAS is the key of " + delegated.Address.Hex() + ", which is a contract on " + devnet.NetworkID}},
		"nobody settles, and the treasury is a caller's wallet": {[]string{"MARKET_GAS_KEY=", "MARKET_TREASURY_KEY=" + key(caller), apptest.HostedFile(t, false, hosted)},
			[]string{"no facilitator settles on it: facilitator hosted-a supports eip155:8453 (v2)", "which has paid for calls here"}},
	} {
		err := w.Refuses(t, tt.env...)
		if err == nil {
			t.Errorf("%s: it started", name)
			continue
		}
		if lines := strings.Split(strings.TrimSpace(err.Error()), "\n"); len(lines) != len(tt.want) {
			t.Errorf("%s: %d lines, want %d:\n%s", name, len(lines), len(tt.want), err)
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s:\n%s\nwant it to say %q", name, err, part)
			}
		}
	}
}

// Who does not answer has not lied.
func TestStart_GoesOnWhereNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Quiet: true, Prepare: func(t testing.TB, chain *devnet.Chain) []string {
		gone := apptest.NewFront(t, chain.URL())
		gone.Close()
		return []string{apptest.NetworksFile(t, 2, gone.URL)}
	}})
	awaitReady(t, w, false)
}

// In development the chain runs ahead, so a clock is wrong only where the database bears the chain out.
func TestStart_RefusesAClockThatTheChainAndTheDatabaseDoNotShare(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	for wrong, word := range map[time.Duration]string{-10 * time.Minute: "behind", 10 * time.Minute: "ahead of"} {
		err := w.RefusesWith(t, []app.Option{app.WithClock(func() time.Time { return time.Now().UTC().Add(wrong).Truncate(time.Microsecond) })})
		if err == nil || !strings.Contains(err.Error(), word+" the newest block of "+devnet.NetworkID+", and the database's clock agrees with the chain") {
			t.Errorf("a clock that is %s off: %v", wrong, err)
		}
	}
}
