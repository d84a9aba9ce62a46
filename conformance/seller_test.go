package conformance

import (
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

// A seller is an official middleware that sells through our facilitator, and the client that buys there.
type seller struct {
	*apptest.World // with the chain
	*node
	client client
	shop   string         // its URL
	payTo  common.Address // its owner
	gas    common.Address // of our facilitator, which sends the transactions
}

// sellers are the official ones, by package: their script, who buys there, and in which words of their version a payment is refused.
var sellers = map[string]struct {
	script, client   string
	unfunded, replay string
	upfront          bool // it knows the flow that settles before the work
}{
	"@x402/express": {"express.mjs", "@x402/fetch", "invalid_exact_evm_insufficient_balance", "invalid_exact_evm_nonce_already_used", true},
	"x402-express":  {"v1/express.mjs", "x402-fetch", "insufficient_funds", "invalid_transaction_state", false},
}

// newSeller tries an official middleware that has its payments verified and settled by our facilitator.
func newSeller(t *testing.T, peer string) bench {
	t.Helper()
	name, _, _ := strings.Cut(peer, " ")
	of, known := sellers[name]
	if !known {
		t.Fatalf("nobody knows how to sell with %s", name)
	}
	gasKey, gas := apptest.NewKey(t)
	_, owner := apptest.NewKey(t)
	s := seller{node: start(t, of.script), client: clients[of.client](t), World: apptest.Start(t), payTo: owner.Address(), gas: gas.Address()}
	if err := s.Chain.FundGas(t.Context(), s.gas, big.NewInt(params.Ether)); err != nil {
		t.Fatal(err)
	}
	ours := s.Facilitator(t, "MARKET_GAS_KEY="+gasKey)
	var shop struct{ URL string }
	s.do(t, "listen", job{"facilitator": ours.URL, "token": apptest.FacilitatorToken, "payTo": s.payTo.Hex(), "price": "$0.002"}, &shop)
	s.shop = shop.URL
	b := bench{
		"served":       s.sells,
		"replay":       func(t *testing.T) { s.meetsAReplay(t, of.replay) },
		"empty wallet": func(t *testing.T) { s.meetsAnEmptyWallet(t, of.unfunded) },
		"not charged":  s.fails,
	}
	if of.upfront {
		b["upfront"] = s.sellsUpfront
	}
	return b
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
	s.client.settled(t, s.World, got, p, s.payTo, apptest.PriceUnits)
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
	s.client.settled(t, s.World, first, p, s.payTo, apptest.PriceUnits)
	s.ran(t, path, 1)
}

// In this flow the middleware asks for nothing but the settlement, each time that a payment comes in: that the buyer does not get its work again
// for the same payment is up to the facilitator.
func (s seller) sellsUpfront(t *testing.T) {
	const path = "/upfront?as=upfront"
	p := fund(t, s.World, funds)
	first := s.buy(t, p, path)
	if first.Status != http.StatusOK || first.Body != `{"done":true}` {
		t.Fatalf("got %s", first)
	}
	s.client.paidOnce(t, first)
	for range 2 {
		var again seen
		s.client.do(t, "send", job{"url": s.shop + path, "method": http.MethodGet, "headers": first.Sent[1]}, &again)
		if again.Status != http.StatusPaymentRequired {
			t.Errorf("the same payment again got %s, want 402", again)
		}
	}
	s.client.settled(t, s.World, first, p, s.payTo, apptest.PriceUnits)
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
