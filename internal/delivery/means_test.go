package delivery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
)

// prices is so many times what the payments of a shelf cost.
func prices(n int) money.Amount { return money.FromUnits(uint64(n) * 10_000) } //nolint:gosec // small and positive

// A payer that opened some payments shows another one.
func TestPath_Means_CountsWhatIsOpen(t *testing.T) {
	t.Parallel()
	used := func(n int) []bool {
		all := make([]bool, chain.UsedMax)
		for i := range n {
			all[i] = true
		}
		return all
	}
	code := func(holds int) chain.AccountState { return chain.AccountState{Balance: prices(holds), HasCode: true} }
	funds := func(holds int) chain.AccountState { return chain.AccountState{Balance: prices(holds)} }
	for name, tt := range map[string]struct {
		open   int
		before int // that are not claimed yet
		known  bool
		undone int
		broke  int
		node   scripted
		reason call.Reason // empty: none
		reads  int
	}{
		"a stranger with enough":                       {open: 3, node: scripted{account: funds(4)}, reads: 1},
		"a stranger with too little":                   {open: 3, node: scripted{account: funds(3), used: used(0)}, reason: call.PayerUnfunded, reads: 3},
		"of what is not claimed yet":                   {before: 3, node: scripted{account: funds(3), used: used(0)}, reason: call.PayerUnfunded, reads: 3},
		"two of them have left the balance already":    {open: 3, node: scripted{account: funds(2), used: used(2)}, reads: 3},
		"one of them has, and it is not enough":        {open: 3, node: scripted{account: funds(2), used: used(1)}, reason: call.PayerUnfunded, reads: 3},
		"more than fit a round trip, all on the chain": {open: 60, node: scripted{account: funds(9), used: used(chain.UsedMax)}, reads: 4},
		"more than fit, and none is":                   {open: 60, node: scripted{account: funds(9), used: used(0)}, reason: call.PayerUnfunded, reads: 4},
		"more than are looked at":                      {open: noncesMax + 2, node: scripted{account: funds(2), used: used(chain.UsedMax)}, reason: call.NotReady, reads: 6},
		"a known payer is not looked up":               {open: trustMax, known: true, node: scripted{}},
		"a known payer with many":                      {open: trustMax + 1, known: true, node: scripted{account: funds(trustMax + 2)}, reads: 1},
		"a known payer with more than it can pay":      {open: trustMax + 1, known: true, node: scripted{account: funds(trustMax + 1), used: used(0)}, reason: call.PayerUnfunded, reads: 3},
		"an account with code and plenty":              {open: codeOpenMax - 1, node: scripted{account: code(100)}, reads: 2},
		"an account with code may take all of it back": {open: codeOpenMax, node: scripted{account: code(100)}, reason: call.NotReady, reads: 1},
		"one that did so once does one at a time":      {open: 1, undone: 1, known: true, reason: call.NotReady},
		"and that":              {undone: 1, known: true},
		"one that did so twice": {undone: payment.UndoneMax, known: true, reason: call.PaymentInvalid},
		"one that found its money gone a few times": {broke: brokeMax - 1, known: true},
		"one that found it gone often":              {broke: brokeMax, known: true, reason: call.PayerUnfunded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			var before []payment.Open
			for range tt.open {
				s.claim(t)
			}
			for n := range tt.before {
				before = append(before, payment.Open{Nonce: common.Hash{byte(n + 1)}, Amount: prices(1)})
			}
			revert := func(why payment.Code) {
				c := s.claim(t)
				if err := (payment.Store{}).Unsettle(t.Context(), s.db, c.ID, s.owner, call.Rejected, string(why), common.Hash{1}); err != nil {
					t.Fatal(err)
				}
			}
			for range tt.undone {
				revert(payment.CodeFailed)
			}
			for range tt.broke {
				revert(payment.CodeFunds)
			}
			if tt.known {
				s.record(t, s.asked(t).served())
			}
			node := tt.node
			c := s.claim(t)
			p := NewPath(Config{DB: s.db, Now: time.Now, Refunds: RefundPolicy{Count: 100, Window: time.Hour}})
			no := p.means(t.Context(), Request{Target: catalog.Target{Service: &s.service, Endpoint: s.endpoint}},
				&admitted{rail: Rail{Network: chain.Network{ID: c.Network}, Node: &node}, signed: c.Signed}, before)
			if tt.reason == "" && no != nil || tt.reason != "" && (no == nil || no.Reason != tt.reason) {
				t.Errorf("%v, want %q", no, tt.reason)
			}
			if node.reads != tt.reads {
				t.Errorf("%d reads of the node, want %d", node.reads, tt.reads)
			}
		})
	}
}

// The node that has seen a payment leave is gone after it has said what the payer holds, and the next one has not seen it: it would be missing there from
// what has moved.
func TestPath_Covered_TakesBalanceAndNoncesFromOneNode(t *testing.T) {
	t.Parallel()
	word := func(n int) string { return fmt.Sprintf("0x%064x", n) }
	serve := func(holds int, goes bool) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if goes && !bytes.Contains(body, []byte("eth_getCode")) && !bytes.Contains(body, []byte("eth_chainId")) {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			answer := func(q map[string]any) map[string]any {
				result := word(0)
				switch raw, _ := json.Marshal(q); {
				case q["method"] == "eth_chainId":
					result = "0x7"
				case bytes.Contains(raw, []byte("70a08231")): // balanceOf
					result = word(holds)
				}
				return map[string]any{"jsonrpc": "2.0", "id": q["id"], "result": result}
			}
			var one map[string]any
			var many, answers []map[string]any
			if json.Unmarshal(body, &one) == nil {
				_ = json.NewEncoder(w).Encode(answer(one))
				return
			}
			_ = json.Unmarshal(body, &many)
			for _, q := range many {
				answers = append(answers, answer(q))
			}
			_ = json.NewEncoder(w).Encode(answers)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	node, err := chain.Open(chain.Network{ID: "eip155:7", ChainID: 7, RPC: []string{serve(1, true), serve(2, false)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	one := money.FromUnits(1)
	paid := &admitted{rail: Rail{Node: node}, signed: chain.Signed{Authorization: chain.Authorization{Value: one}}}
	p := &Path{Config: Config{Now: time.Now}}
	if no := p.covered(t.Context(), paid, chain.AccountState{Balance: one}, []payment.Open{{Nonce: common.Hash{1}, Amount: one}}); no != nil {
		t.Errorf("%v, want none: the node that is left shows two and none of them moved", no)
	}
}

// Of many at once each sees those before it, and so at most one sees none.
func TestClaiming_OfManyAtOnceEachCountsThoseBefore(t *testing.T) {
	t.Parallel()
	const many = 100
	var (
		c    claiming
		wg   sync.WaitGroup
		seen [many]atomic.Int32
		ends [many]func()
	)
	who := payment.Identity{Network: network, Payer: common.Address{1}}
	for n := range many {
		wg.Go(func() {
			i := who
			i.Nonce = common.Hash{byte(n)}
			before, end := c.begin(i, payment.Open{Nonce: i.Nonce, Amount: prices(1)})
			seen[len(before)].Add(1)
			ends[n] = end
		})
	}
	wg.Wait()
	for n := range seen {
		if got := seen[n].Load(); got != 1 {
			t.Errorf("%d saw %d before them, want one", got, n)
		}
	}
	other := who
	other.Payer[0]++
	if before, end := c.begin(other, payment.Open{}); len(before) != 0 {
		t.Error("another payer's count")
	} else {
		end()
	}
	for _, end := range ends {
		end()
	}
	if len(c.of) != 0 {
		t.Errorf("%d payers are kept after all ended", len(c.of))
	}
}
