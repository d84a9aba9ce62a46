package conformance

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

// An official is a market that has its payments settled, and its refunds sent, by the official facilitator.
type official struct {
	*apptest.World
	*node
	client  client
	account common.Address // of the facilitator: it sends the transactions
}

// newFacilitator opens a market whose one facilitator is the official one, which knows the kinds of one version of x402.
func newFacilitator(version int) func(t *testing.T, peer string) bench {
	return func(t *testing.T, _ string) bench {
		t.Helper()
		key, wallet := apptest.NewKey(t)
		o := official{node: start(t, "facilitator.mjs"), client: clients["@x402/fetch"](t), account: wallet.Address()}
		o.World = apptest.StartWith(t, apptest.Setup{Prepare: func(_ testing.TB, chain *devnet.Chain) []string {
			if err := chain.FundGas(t.Context(), o.account, big.NewInt(params.Ether)); err != nil {
				t.Fatal(err)
			}
			var listening struct{ URL string }
			o.do(t, "listen", job{"rpc": chain.URL(), "key": "0x" + key, "version": version}, &listening)
			return []string{"MARKET_FACILITATORS=" + facilitatorsFile(t, listening.URL)}
		}})
		return bench{
			"served": func(t *testing.T) {
				o.client.isServed(t, o.World)
				o.sentAll(t)
			},
			"refunded": func(t *testing.T) {
				o.client.isRefunded(t, o.World)
				o.sentAll(t)
			},
		}
	}
}

func facilitatorsFile(t *testing.T, url string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"facilitators": []any{map[string]any{
		"name": "official", "kind": "remote", "url": url, "networks": []string{devnet.NetworkID}, "proof": "receipt",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "facilitators.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// sentAll checks that the facilitator, and nobody else, sent what moved money to the treasury and from it.
func (o official) sentAll(t *testing.T) {
	t.Helper()
	in, out := o.Transfers(t, o.Treasury)
	for _, move := range slices.Concat(in, out) {
		if from := sender(t, o.Chain, move.Transaction.Hex()); from != o.account {
			t.Errorf("%s sent %s, want the facilitator's account %s", from, move.Transaction, o.account)
		}
	}
	var asked struct{ Paths []string }
	o.do(t, "seen", nil, &asked)
	if !slices.Contains(asked.Paths, "/supported") || !slices.Contains(asked.Paths, "/settle") {
		t.Errorf("the facilitator was asked for %v, want /supported and /settle", asked.Paths)
	}
}
