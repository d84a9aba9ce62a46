package app_test

import (
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/payment"
	"market/internal/watch"
)

// impatient is the pace of a program that tells at once what it sees.
var impatient = watch.Pace{Look: 50 * time.Millisecond, Deep: 100 * time.Millisecond, Lasting: 200 * time.Millisecond, Quiet: 200 * time.Millisecond}

// noticed counts the notices of a kind, and returns the text of the last one.
func noticed(t *testing.T, w *apptest.World, kind string) (open, over int, text string) {
	t.Helper()
	err := w.DB.QueryRow(t.Context(), `
SELECT count(*) FILTER (WHERE calm_since IS NULL), count(*) FILTER (WHERE calm_since IS NOT NULL), coalesce((array_agg(text ORDER BY raised_at DESC))[1], '')
  FROM notices WHERE kind = $1`, kind).Scan(&open, &over, &text)
	if err != nil {
		t.Fatal(err)
	}
	return open, over, text
}

// Two processes see it, and one notice is raised.
func TestWatch_ATreasuryWhoseMoneyIsGoneIsToldOnceAndOnceMoreWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Quiet: true, Options: []app.Option{app.WithPace(impatient)}})
	second := w.Replica(t)
	payer := w.Payer(t, apptest.PriceUnits)
	// The token refuses to give the money back, so the refund stays owed.
	s := w.List(t, "breaks", func(rw http.ResponseWriter, r *http.Request) {
		if err := w.Chain.SetBlocked(r.Context(), payer.Address(), true); err != nil {
			t.Error(err)
		}
		apptest.Fails(rw, r)
	}, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	if a := w.Pay(t, payer, terms, second.At(t, apptest.Ask(s.URL))); a.JSON["charged"] != false {
		t.Fatalf("a call that fails: %d %s", a.Status, a.Body)
	}
	if open, over, text := noticed(t, w, "treasury_short"); open+over > 0 {
		t.Fatalf("a treasury that holds what it owes is told of: %s", text)
	}

	treasury, err := chain.ParseKey(w.Env("MARKET_TREASURY_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	_, thief := apptest.NewKey(t)
	accepted := terms.Accepts[0]
	accepted.PayTo = thief.Address()
	w.Relay(t, takenFrom(t, w, treasury, accepted))
	var text string
	apptest.Eventually(t, "the operator is told", func() (is bool) {
		var open int
		open, _, text = noticed(t, w, "treasury_short")
		return open == 1
	})
	for _, part := range []string{treasury.Address().Hex(), "holds 0 " + devnet.TokenSymbol, "owes 0.002 " + devnet.TokenSymbol, "Calls under way end"} {
		if !strings.Contains(text, part) {
			t.Errorf("the notice does not say %q: %s", part, text)
		}
	}
	w.Mint(t, treasury.Address(), apptest.PriceUnits)
	apptest.Eventually(t, "it is over", func() bool { open, over, _ := noticed(t, w, "treasury_short"); return open == 0 && over == 1 })
}

func takenFrom(t *testing.T, w *apptest.World, from chain.Key, accepted payment.Accepted) chain.Signed {
	t.Helper()
	head, err := w.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := chain.Authorization{From: from.Address(), To: accepted.PayTo, Value: accepted.Amount, ValidBefore: head.Time + 600, Nonce: common.Hash{31: 1}}
	signature, err := from.SignAuthorization(chain.NewDomain(chain.Asset{Address: accepted.Asset, EIP712Name: devnet.TokenName,
		EIP712Version: devnet.TokenVersion}, devnet.ChainID), a)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Signed{Asset: accepted.Asset, Authorization: a, Signature: signature}
}

// wantExplained looks whether all work beside the calls is watched, and whether it is said what stops with it.
func wantExplained(t *testing.T, w *apptest.World) {
	t.Helper()
	loops := w.App.Loops()
	for _, name := range append(loops, "facilitator/hosted") {
		if !watch.Explained(name) {
			t.Errorf("nobody is told what stops with the loop %q", name)
		}
	}
	for _, name := range []string{"heartbeat", "outage guard", "sweeper", "tidy", "holding", "traffic", "rounds", "reload", "owners", "notifications", "watch", "deep watch", "sources",
		"engine/" + devnet.NetworkID} {
		if !slices.Contains(loops, name) {
			t.Errorf("the loop %q is not watched: %v are", name, loops)
		}
	}
}

// B85: the operator is told below a threshold, before a call is refused.
func TestWatch_AGasWalletThatEmptiesIsToldBeforeAnythingStops(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Quiet: true, Options: []app.Option{app.WithPace(impatient)}})
	wantExplained(t, w)
	gas, err := chain.ParseKey(w.Env("MARKET_GAS_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := ethclient.DialContext(t.Context(), w.Chain.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	// What is left pays for more than the 200 transactions with which the network is still ready, and for less than 500.
	head, err := client.HeaderByNumber(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tip, err := client.SuggestGasTipCap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	most := new(big.Int).Add(new(big.Int).Lsh(head.BaseFee, 1), tip)
	leave := new(big.Int).Mul(most, big.NewInt(chain.SettleGas*350))
	has, err := client.BalanceAt(t.Context(), gas.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	to := common.Address{1}
	tx, err := gas.SignTransaction(types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(devnet.ChainID), GasTipCap: big.NewInt(1e9), GasFeeCap: most, Gas: 21_000,
		To: &to, Value: new(big.Int).Sub(has, leave)}), devnet.ChainID)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.SendTransaction(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	var text string
	apptest.Eventually(t, "the operator is told", func() (is bool) {
		var open int
		open, _, text = noticed(t, w, "gas_low")
		return open == 1
	})
	if !strings.Contains(text, gas.Address().Hex()) || !strings.Contains(text, "fewer than 200") {
		t.Errorf("the notice: %s", text)
	}
	// All goes on.
	s := w.List(t, "works", apptest.Works, nil)
	if a := w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Errorf("a call with little gas: %d %s", a.Status, a.Body)
	}
	if err := w.Chain.FundGas(t.Context(), gas.Address(), has); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "it is over", func() bool { open, over, _ := noticed(t, w, "gas_low"); return open == 0 && over == 1 })
	if open, over, text := noticed(t, w, "network_not_ready"); open+over > 0 {
		t.Errorf("the network was not ready: %s", text)
	}
}
