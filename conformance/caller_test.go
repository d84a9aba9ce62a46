package conformance

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

// funds is what a payer starts with.
const funds = 10_000_000

// dearUnits is the price of a service that stock clients think twice about: $1.50.
const dearUnits = 1_500_000

// A client is one of the official ones.
type client struct {
	*node
	header  string // in which it pays
	network string // as its receipt names it
	tooDear string // what its error says where it refuses to pay dearUnits; empty: it has no cap
}

// clients start the official ones, by package.
var clients = map[string]func(t *testing.T) client{
	"@x402/fetch": func(t *testing.T) client {
		t.Helper()
		return client{start(t, "fetch.mjs"), "PAYMENT-SIGNATURE", devnet.NetworkID, "spendControls.maxAmountPerPayment"}
	},
	"@x402/axios": func(t *testing.T) client {
		t.Helper()
		return client{start(t, "axios.mjs"), "PAYMENT-SIGNATURE", devnet.NetworkID, ""}
	},
	"x402-fetch": func(t *testing.T) client {
		t.Helper()
		return client{start(t, "v1/fetch.mjs"), "X-PAYMENT", devnet.V1Name, "exceeds maximum allowed"}
	},
}

// seen is what a client sent and what it got, or why it threw.
type seen struct {
	Error      string
	Sent       []map[string]string // the payment headers of each request
	Status     int
	Body       string
	Outcome    string
	Call       string
	RetryAfter string
	Receipt    *receipt
	Reason     string // of a 402
}

// String leaves the payments themselves out: they are long.
func (s seen) String() string {
	var sent []string
	for _, headers := range s.Sent {
		sent = append(sent, "["+strings.Join(slices.Collect(maps.Keys(headers)), " ")+"]")
	}
	return fmt.Sprintf("after requests with %s: error %q, status %d, outcome %q, call %q, Retry-After %q, receipt %+v, reason %q, body %s",
		strings.Join(sent, ", "), s.Error, s.Status, s.Outcome, s.Call, s.RetryAfter, s.Receipt, s.Reason, s.Body)
}

// A receipt is what the client's own decoder makes of the settlement header.
type receipt struct {
	Success     bool
	Transaction string
	Network     string
	Payer       string
}

// A payer is a wallet with money, and its key as scripts take it.
type payer struct {
	key     string
	address common.Address
}

func fund(t *testing.T, w *apptest.World, units uint64) payer {
	t.Helper()
	text, key := apptest.NewKey(t)
	if units > 0 {
		w.Mint(t, key.Address(), units)
	}
	return payer{"0x" + text, key.Address()}
}

// call sends a good request to a listed service.
func (c client) call(t *testing.T, p payer, url string) seen {
	t.Helper()
	return c.send(t, p, url, `{"n":1}`, nil)
}

func (c client) send(t *testing.T, p payer, url, body string, headers map[string]string) seen {
	t.Helper()
	all := map[string]string{"Content-Type": "application/json"}
	maps.Copy(all, headers)
	var s seen
	c.do(t, "call", job{"key": p.key, "url": url, "method": http.MethodPost, "body": body, "headers": all}, &s)
	return s
}

// paidOnce checks that the client asked for the price, and then paid in its header and no other.
func (c client) paidOnce(t *testing.T, s seen) {
	t.Helper()
	if len(s.Sent) != 2 || len(s.Sent[0]) != 0 || len(s.Sent[1]) != 1 || s.Sent[1][c.header] == "" {
		t.Errorf("the client sent %d requests with %v, want one without a payment and one with %s", len(s.Sent), s.Sent, c.header)
	}
}

// settled checks the receipt against the chain: the payer paid this to that account, in this transaction, and nothing else.
func (c client) settled(t *testing.T, w *apptest.World, s seen, p payer, to common.Address, units uint64) {
	t.Helper()
	_, out := w.Transfers(t, p.address)
	if len(out) != 1 || out[0].To != to || out[0].Units != units {
		t.Fatalf("the payer's transfers are %v, want one of %d to %s", out, units, to)
	}
	want := receipt{true, out[0].Transaction.Hex(), c.network, p.address.Hex()}
	if s.Receipt == nil || *s.Receipt != want {
		t.Errorf("the receipt is %+v, want %+v", s.Receipt, want)
	}
}

// unpaid checks that nothing of the payer's has moved.
func unpaid(t *testing.T, w *apptest.World, p payer) {
	t.Helper()
	if _, out := w.Transfers(t, p.address); len(out) != 0 {
		t.Errorf("the payer paid %v, want nothing", out)
	}
}

// newCaller tries an official client against our server.
func newCaller(t *testing.T, peer string) bench {
	t.Helper()
	name, _, _ := strings.Cut(peer, " ")
	open := clients[name]
	if open == nil {
		t.Fatalf("nobody knows how to call with %s", name)
	}
	c, w := open(t), apptest.Start(t)
	return bench{
		"served":        func(t *testing.T) { c.isServed(t, w) },
		"input refused": func(t *testing.T) { c.isRefused(t, w) },
		"refunded":      func(t *testing.T) { c.isRefunded(t, w) },
		"cooldown":      func(t *testing.T) { c.meetsACooldown(t, w) },
		"replay":        func(t *testing.T) { c.repeats(t, w) },
		"above cap":     func(t *testing.T) { c.meetsAHighPrice(t, w) },
		"empty wallet":  func(t *testing.T) { c.hasNoMoney(t, w) },
		"streamed":      func(t *testing.T) { c.getsAStream(t, w) },
		"stream broken": func(t *testing.T) { c.seesAStreamBreak(t, w) },
	}
}

func (c client) isServed(t *testing.T, w *apptest.World) {
	s, p := w.List(t, "serves", apptest.Works, nil), fund(t, w, funds)
	got := c.call(t, p, s.URL)
	if got.Status != http.StatusOK || got.Outcome != "served" || got.Body != `{"done":true}` || s.Asked() != 1 {
		t.Fatalf("got %s, and the service was asked %d times", got, s.Asked())
	}
	c.paidOnce(t, got)
	c.settled(t, w, got, p, w.Treasury, apptest.PriceUnits)
}

func (c client) isRefused(t *testing.T, w *apptest.World) {
	s, p := w.List(t, "picky", apptest.Works, nil), fund(t, w, funds)
	got := c.send(t, p, s.URL, `{"n":"one"}`, nil)
	if got.Status != http.StatusUnprocessableEntity || got.Outcome != "refused" || !strings.Contains(got.Body, `"code":"input_invalid"`) || got.Receipt != nil {
		t.Errorf("got %s, want a refusal without a receipt", got)
	}
	c.paidOnce(t, got)
	unpaid(t, w, p)
	if s.Asked() != 0 {
		t.Errorf("the service was asked %d times", s.Asked())
	}
}

func (c client) isRefunded(t *testing.T, w *apptest.World) {
	s, p := w.List(t, "fails", apptest.Fails, nil), fund(t, w, funds)
	got := c.call(t, p, s.URL)
	if got.Status != http.StatusBadGateway || got.Outcome != "failed" || s.Asked() != 1 {
		t.Fatalf("got %s, and the service was asked %d times", got, s.Asked())
	}
	c.paidOnce(t, got)
	c.settled(t, w, got, p, w.Treasury, apptest.PriceUnits)
	refund := w.AwaitRefund(t, got.Call)
	in, _ := w.Transfers(t, p.address)
	back := slices.DeleteFunc(in, func(x apptest.Transfer) bool { return x.From != w.Treasury })
	if len(back) != 1 || back[0].Units != apptest.PriceUnits || back[0].Transaction.Hex() != refund {
		t.Errorf("the treasury gave back %v, want the price once, in %s", back, refund)
	}
	if left := w.Balance(t, p.address); left != funds {
		t.Errorf("the payer has %d units, want all %d", left, funds)
	}
}

func (c client) meetsACooldown(t *testing.T, w *apptest.World) {
	s, first, second := w.List(t, "rests", apptest.Fails, nil), fund(t, w, funds), fund(t, w, funds)
	if got := c.call(t, first, s.URL); got.Outcome != "failed" {
		t.Fatalf("the first call got %s, want it to fail", got)
	}
	apptest.Eventually(t, "the gate hears of the cooldown", func() bool {
		return w.Send(t, apptest.Ask(s.URL), "").Status == http.StatusServiceUnavailable
	})
	got := c.call(t, second, s.URL)
	if got.Status != http.StatusServiceUnavailable || got.RetryAfter == "" || !strings.Contains(got.Body, `"code":"in_cooldown"`) {
		t.Errorf("got %s, want 503 with Retry-After", got)
	}
	if len(got.Sent) != 1 || len(got.Sent[0]) != 0 {
		t.Errorf("the client sent %v, want one request without a payment", got.Sent)
	}
	unpaid(t, w, second)
	if s.Asked() != 1 {
		t.Errorf("the service was asked %d times, want once", s.Asked())
	}
}

func (c client) repeats(t *testing.T, w *apptest.World) {
	s, p := w.List(t, "repeats", apptest.Works, nil), fund(t, w, funds)
	first := c.call(t, p, s.URL)
	if first.Outcome != "served" {
		t.Fatalf("the first call got %s", first)
	}
	c.paidOnce(t, first)
	again := c.send(t, p, s.URL, `{"n":1}`, first.Sent[1])
	if again.Status != first.Status || again.Body != first.Body || again.Call != first.Call || again.Outcome != first.Outcome {
		t.Errorf("the same payment again got %s, want what it got before, %s", again, first)
	}
	if len(again.Sent) != 1 {
		t.Errorf("the client sent %d requests, want the one", len(again.Sent))
	}
	c.settled(t, w, again, p, w.Treasury, apptest.PriceUnits)
	if s.Asked() != 1 {
		t.Errorf("the service was asked %d times, want once", s.Asked())
	}
}

func (c client) meetsAHighPrice(t *testing.T, w *apptest.World) {
	s, p := w.List(t, "dear", apptest.Works, map[string]any{"price_usd": "1.5"}), fund(t, w, funds)
	got := c.call(t, p, s.URL)
	if c.tooDear == "" {
		if got.Outcome != "served" {
			t.Fatalf("got %s: a client without a cap pays", got)
		}
		c.settled(t, w, got, p, w.Treasury, dearUnits)
		return
	}
	if !strings.Contains(got.Error, c.tooDear) || got.Status != 0 {
		t.Errorf("got %s, want the client to throw for its cap: %q", got, c.tooDear)
	}
	if len(got.Sent) != 1 || len(got.Sent[0]) != 0 {
		t.Errorf("the client sent %v, want the question for the price alone", got.Sent)
	}
	unpaid(t, w, p)
	if s.Asked() != 0 {
		t.Errorf("the service was asked %d times", s.Asked())
	}
}

// A client that went on signing after each 402 would never end.
func (c client) hasNoMoney(t *testing.T, w *apptest.World) {
	s, p := w.List(t, "unfunded", apptest.Works, nil), fund(t, w, 0)
	got := c.call(t, p, s.URL)
	if got.Status != http.StatusPaymentRequired || got.Outcome != "refused" || got.Reason != "insufficient_funds" {
		t.Errorf("got %s, want 402 with insufficient_funds", got)
	}
	c.paidOnce(t, got)
	if s.Asked() != 0 {
		t.Errorf("the service was asked %d times", s.Asked())
	}
}
