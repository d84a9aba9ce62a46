package desk

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
	"market/internal/payment"
)

// wantSettled checks a yes against the chain itself, and returns its transaction.
func (g *ground) wantSettled(t *testing.T, version payment.Version, s chain.Signed, a answer) string {
	t.Helper()
	if a.status != http.StatusOK || !a.Success || a.code() != "" || a.Network != g.nameIn(version) || a.Payer != s.From.Hex() {
		t.Fatalf("v%d: %d %s, want a yes with network and payer", version, a.status, a.raw)
	}
	_, _, found, err := g.node.Locate(t.Context(), s.Expect(), common.HexToHash(a.Transaction))
	if err != nil || !found {
		t.Fatalf("v%d: transaction %s does not have the transfer: %v", version, a.Transaction, err)
	}
	return a.Transaction
}

func TestDesk_Settle_OnceAndAgainIsOneTransferAndOneAnswer(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url, replica := g.desk(t, nil), g.desk(t, nil)
	for _, version := range versions {
		s := g.authorize(t, nil)
		body := g.body(version, s, nil)
		first := ask(t, url+"/settle", body)
		g.wantSettled(t, version, s, first)
		for name, at := range map[string]string{"again": url, "at another replica": replica} {
			if a := ask(t, at+"/settle", body); a.raw != first.raw || a.status != first.status {
				t.Errorf("v%d, %s: %s, want %s", version, name, a.raw, first.raw)
			}
		}
	}
	if n := g.transfers(t); n != 2 || g.sent(t) != 2 {
		t.Errorf("%d transfers by %d transactions, want 2 by 2", n, g.sent(t))
	}
}

func TestDesk_Settle_TenAtOnceAreOneTransferAndOneAnswer(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	replicas := []string{g.desk(t, nil), g.desk(t, nil)}
	s := g.authorize(t, nil)
	body := g.body(payment.V2, s, nil)
	answers := make([]answer, 10)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = ask(t, replicas[i%len(replicas)]+"/settle", body) })
	}
	wg.Wait()
	for _, a := range answers {
		g.wantSettled(t, payment.V2, s, a)
		if a.raw != answers[0].raw {
			t.Errorf("%s, want %s as the others", a.raw, answers[0].raw)
		}
	}
	if n := g.transfers(t); n != 1 || g.sent(t) != 1 {
		t.Errorf("%d transfers by %d transactions, want one", n, g.sent(t))
	}
}

// The process that signed the transaction may be gone: it is in the database, and the chain has it.
func TestDesk_Settle_GoesOnWithAPendingOneAfterARestart(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for _, version := range versions {
		s := g.authorize(t, nil)
		body := g.body(version, s, nil)
		g.Pause()
		hasty := g.desk(t, func(c *Config) { c.SettleTime = 500 * time.Millisecond })
		pending := ask(t, hasty+"/settle", body)
		if pending.status != http.StatusOK || pending.Success || pending.ErrorReason != "settlement_pending" || pending.Transaction == "" ||
			pending.Payer != s.From.Hex() || pending.Network != g.nameIn(version) {
			t.Fatalf("v%d: %d %s, want settlement_pending with its transaction", version, pending.status, pending.raw)
		}
		g.Resume()
		if got := g.wantSettled(t, version, s, ask(t, g.desk(t, nil)+"/settle", body)); got != pending.Transaction {
			t.Errorf("v%d: settled by %s, want %s", version, got, pending.Transaction)
		}
	}
	if n := g.transfers(t); n != 2 || g.sent(t) != 2 {
		t.Errorf("%d transfers by %d transactions, want 2 by 2", n, g.sent(t))
	}
}

func TestDesk_Settle_TellsASettledPaymentAfterItsTime(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	ours, strangers, unsent := g.authorize(t, nil), g.authorize(t, nil), g.authorize(t, nil)
	first := ask(t, url+"/settle", g.body(payment.V2, ours, nil))
	g.wantSettled(t, payment.V2, ours, first)
	sent := g.sendAs(t, g.stranger, strangers)
	if err := g.Elapse(t.Context(), 200); err != nil {
		t.Fatal(err)
	}
	if _, err := g.node.FreshHead(t.Context()); err != nil { // or the time of a second ago would do
		t.Fatal(err)
	}
	if a := ask(t, url+"/settle", g.body(payment.V2, ours, nil)); a.raw != first.raw {
		t.Errorf("settled by us: %s, want %s", a.raw, first.raw)
	}
	if got := g.wantSettled(t, payment.V2, strangers, ask(t, url+"/settle", g.body(payment.V2, strangers, nil))); got != sent.Hex() {
		t.Errorf("settled by %s, want %s", got, sent)
	}
	if a := ask(t, url+"/settle", g.body(payment.V2, unsent, nil)); a.status != http.StatusOK || a.code() != "invalid_exact_evm_payload_authorization_valid_before" || a.Transaction != "" {
		t.Errorf("never shown: %d %s, want that its time is over", a.status, a.raw)
	}
	if n := g.sent(t); n != 1 {
		t.Errorf("%d transactions of ours, want 1", n)
	}
}

// A seller who asks for more, or for another recipient, does not get the yes of a payment that was made.
func TestDesk_Settle_JudgesByTheTermsOfThisRequest(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	other := newKey(t).Address()
	k := g.shopKey()
	k.Recipients = append(k.Recipients, other)
	url := g.desk(t, nil, k)
	s := g.authorize(t, nil)
	g.wantSettled(t, payment.V2, s, ask(t, url+"/settle", g.body(payment.V2, s, nil)))
	for name, tt := range map[string]struct {
		member string
		value  any
		want   string
	}{
		"another amount":    {"amount", "5000", "invalid_exact_evm_payload_authorization_value_mismatch"},
		"another recipient": {"payTo", other.Hex(), "invalid_exact_evm_recipient_mismatch"},
	} {
		body := g.body(payment.V2, s, func(o object) {
			o.at("paymentRequirements")[tt.member] = tt.value
			o.at("paymentPayload", "accepted")[tt.member] = tt.value
		})
		if a := ask(t, url+"/settle", body); a.status != http.StatusOK || a.Success || a.code() != tt.want || a.Transaction != "" {
			t.Errorf("%s: %d %s, want %s and no transaction", name, a.status, a.raw, tt.want)
		}
	}
}

// One nonce can be signed twice. The token takes one of the two, and the other is told so.
func TestDesk_Settle_OfTwoPaymentsWithOneNonceOnePays(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	first := g.authorize(t, nil)
	g.wantSettled(t, payment.V2, first, ask(t, url+"/settle", g.body(payment.V2, first, nil)))
	second := g.authorize(t, func(a *chain.Authorization) { a.Nonce, a.ValidBefore = first.Nonce, first.ValidBefore+60 })
	// It moves the same value to the same account, so the transfer of the first is what was asked for. The seller looks at the transaction.
	g.wantSettled(t, payment.V2, second, ask(t, url+"/settle", g.body(payment.V2, second, nil)))
	if n := g.transfers(t); n != 1 {
		t.Errorf("%d transfers, want 1", n)
	}
}

func TestDesk_Settle_SaysWhyNothingMoved(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	s := g.authorize(t, nil)
	if err := g.SetPaused(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	a := ask(t, url+"/settle", g.body(payment.V2, s, nil))
	if a.status != http.StatusOK || a.Success || a.code() != "invalid_exact_evm_transaction_simulation_failed" || a.Transaction != "" || g.sent(t) != 0 {
		t.Errorf("token is paused: %d %s, want a decided no and no transaction", a.status, a.raw)
	}
	if err := g.SetPaused(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	g.wantSettled(t, payment.V2, s, ask(t, url+"/settle", g.body(payment.V2, s, nil)))
}

func TestDesk_Settle_GoesOnWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	s := g.authorize(t, nil)
	raw := encode(t, g.body(payment.V2, s, nil))
	g.Pause()
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/settle", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(r); err == nil {
			_ = response.Body.Close()
		}
	}()
	eventually(t, "the transaction is stored", func() bool { return g.sent(t) == 1 })
	leave()
	<-gone
	g.Resume()
	eventually(t, "the shop has the money", func() bool { return g.transfers(t) == 1 })
}

// Trouble of ours is no verdict on the payment: the client asks again.
func TestDesk_TroubleOfOursDecidesNothing(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.authorize(t, nil)
	noChain := g.desk(t, func(c *Config) { c.Rails[0].Node = away{} })
	closed, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	noDatabase := g.desk(t, func(c *Config) { c.DB = closed })
	for name, url := range map[string]string{"no chain": noChain, "no database": noDatabase} {
		for route, code := range map[string]string{"/verify": "unexpected_verify_error", "/settle": "unexpected_settle_error"} {
			a := ask(t, url+route, g.body(payment.V2, s, nil))
			if a.status != http.StatusServiceUnavailable || a.yes() || a.code() != code || a.header.Get("Retry-After") == "" || a.Transaction != "" {
				t.Errorf("%s, %s: %d %s, want 503, %s and Retry-After", name, route, a.status, a.raw, code)
			}
		}
	}
	if n := g.transfers(t); n != 0 || g.sent(t) != 0 {
		t.Errorf("%d transfers by %d transactions, want none", n, g.sent(t))
	}
}
