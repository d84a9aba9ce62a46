// Package conformance runs official x402 clients from npm, unmodified and with their default settings, against our server.
package conformance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"market/internal/app/apptest"
)

// seen is what pay.mjs prints.
type seen struct {
	Payer   string `json:"payer"`
	Status  int    `json:"status"`
	Outcome string `json:"outcome"`
	Call    string `json:"call"`
	Body    string `json:"body"`
	Receipt *struct {
		Success     bool   `json:"success"`
		Transaction string `json:"transaction"`
		Network     string `json:"network"`
		Payer       string `json:"payer"`
	} `json:"receipt"`
}

// pay runs the stock client once. A machine without Node, or without what npm ci installs, fails the test: it proves nothing there.
func pay(t *testing.T, key string, args ...string) seen {
	t.Helper()
	if _, err := os.Stat("node_modules"); err != nil {
		t.Fatalf("the official clients are not installed: run npm ci in conformance (%v)", err)
	}
	var stdout, stderr bytes.Buffer
	node := exec.CommandContext(t.Context(), "node", append([]string{"pay.mjs"}, args...)...)
	node.Env = append(os.Environ(), "MARKET_CALLER_KEY=0x"+key)
	node.Stdout, node.Stderr = &stdout, &stderr
	if err := node.Run(); err != nil {
		t.Fatalf("node pay.mjs: %v\n%s", err, stderr.Bytes())
	}
	var s seen
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		t.Fatalf("%v: %s", err, stdout.Bytes())
	}
	return s
}

func TestFetch_PaysWithDefaultSettings(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "stock", apptest.Works, nil)
	text, key := apptest.NewKey(t)
	w.Mint(t, key.Address(), 10*apptest.PriceUnits)

	got := pay(t, text, s.URL, "POST", `{"n":1}`)
	if got.Status != http.StatusOK || got.Outcome != "served" || got.Body != `{"done":true}` {
		t.Fatalf("the stock client got %+v", got)
	}
	if got.Receipt == nil || !got.Receipt.Success || got.Receipt.Network != "eip155:84532" || got.Receipt.Payer != key.Address().Hex() {
		t.Errorf("its receipt is %+v", got.Receipt)
	}
	if s.Asked() != 1 || w.Balance(t, key.Address()) != 9*apptest.PriceUnits || w.Balance(t, w.Treasury) != apptest.PriceUnits {
		t.Errorf("asked %d times; the payer has %d, the treasury %d", s.Asked(), w.Balance(t, key.Address()), w.Balance(t, w.Treasury))
	}
}

func TestFetch_GetsItsMoneyBackForAFailure(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "stock-fails", apptest.Fails, nil)
	text, key := apptest.NewKey(t)
	w.Mint(t, key.Address(), 10*apptest.PriceUnits)

	got := pay(t, text, s.URL, "POST", `{"n":1}`)
	if got.Status != http.StatusBadGateway || got.Outcome != "failed" || got.Receipt == nil || !got.Receipt.Success {
		t.Fatalf("the stock client got %+v, receipt %+v", got, got.Receipt)
	}
	w.AwaitRefund(t, got.Call)
	if left := w.Balance(t, key.Address()); left != 10*apptest.PriceUnits {
		t.Errorf("the payer has %d units after its refund, want all", left)
	}
}
