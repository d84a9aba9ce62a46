package app_test

import (
	"context"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/facilitator"
	"market/internal/money"
	"market/internal/postgres/pgtest"
)

const supportsUs = `{"kinds":[{"x402Version":2,"scheme":"exact","network":"eip155:84532"}],"extensions":[],"signers":{}}`

// A settling is a request to settle as somebody else's facilitator sees it.
type settling struct {
	t      *testing.T
	w      http.ResponseWriter
	r      *http.Request
	signed chain.Signed
	engine *facilitator.Engine
	late   *sync.WaitGroup
}

// A hosted facilitator is somebody else's program behind the standard API: an engine with a gas key and a database of its own. What it says
// to a request to settle can be changed while the test goes on.
type hosted struct {
	*httptest.Server
	address string
	how     atomic.Pointer[func(settling)]
	asked   atomic.Int32 // to settle
	engine  atomic.Pointer[facilitator.Engine]
	late    sync.WaitGroup
}

func newHosted(t *testing.T, supports string, how func(settling)) *hosted {
	t.Helper()
	h := &hosted{}
	h.how.Store(&how)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /supported", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, supports) })
	mux.HandleFunc("POST /settle", func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		if got := r.Header.Get("Authorization"); got != "Bearer hunter2" {
			t.Errorf("the credential is %q", got)
		}
		(*h.how.Load())(settling{t, w, r, readSigned(t, r.Body), h.engine.Load(), &h.late})
	})
	h.Server = httptest.NewServer(mux)
	h.address = h.Listener.Addr().String()
	t.Cleanup(func() { h.late.Wait(); h.Close() })
	return h
}

// readSigned reads the authorization of a v2 request.
func readSigned(t *testing.T, body io.Reader) chain.Signed {
	t.Helper()
	var in struct {
		Payload struct {
			Payload struct {
				Signature     hexutil.Bytes
				Authorization struct {
					From, To                       common.Address
					Value, ValidAfter, ValidBefore string
					Nonce                          common.Hash
				}
			}
		} `json:"paymentPayload"`
		Requirements struct {
			Asset, PayTo common.Address
			Amount       string
		} `json:"paymentRequirements"`
	}
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		t.Errorf("decode request: %v", err)
	}
	a := in.Payload.Payload.Authorization
	if in.Requirements.PayTo != a.To || in.Requirements.Amount != a.Value {
		t.Errorf("terms %+v for %+v", in.Requirements, a)
	}
	number := func(text string) *big.Int {
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			t.Errorf("number %q", text)
			return new(big.Int)
		}
		return n
	}
	signature, err := chain.ParseSignature(in.Payload.Payload.Signature)
	if err != nil {
		t.Error(err)
	}
	return chain.Signed{Asset: in.Requirements.Asset, Signature: signature, Authorization: chain.Authorization{From: a.From, To: a.To,
		Value: money.FromUnits(number(a.Value).Uint64()), ValidAfter: number(a.ValidAfter).Uint64(), ValidBefore: number(a.ValidBefore).Uint64(), Nonce: a.Nonce}}
}

// open gives it what it settles with, once there is a chain.
func (h *hosted) open(t *testing.T, w *apptest.World) {
	t.Helper()
	_, gas := apptest.NewKey(t)
	if err := w.Chain.FundGas(t.Context(), gas.Address(), new(big.Int).Exp(big.NewInt(10), big.NewInt(19), nil)); err != nil {
		t.Fatal(err)
	}
	node, err := chain.Dial(t.Context(), chain.Network{
		ID: devnet.NetworkID, ChainID: devnet.ChainID, RPC: []string{w.Chain.URL()}, Confirmations: 2, ServeAtDepth: 1,
		Assets: []chain.Asset{{Address: devnet.TokenAddress(), Decimals: devnet.TokenDecimals, EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	engine, err := facilitator.NewEngine(node, pgtest.New(t), gas, facilitator.Options{Treasuries: []common.Address{w.Treasury}})
	if err != nil {
		t.Fatal(err)
	}
	h.engine.Store(engine)
}

func (h *hosted) does(how func(settling)) { h.how.Store(&how) }

// reopen answers again at the same address after Close.
func (h *hosted) reopen(t *testing.T) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", h.address)
	if err != nil {
		t.Fatal(err)
	}
	again := &httptest.Server{Listener: l, Config: &http.Server{Handler: h.Config.Handler, ReadHeaderTimeout: time.Minute}}
	again.Start()
	t.Cleanup(func() { h.late.Wait(); again.Close() })
}

// hostedFile is the facilitators file for some of them, in their order.
func hostedFile(t *testing.T, local bool, all ...*hosted) string {
	t.Helper()
	return facilitatorsFile(t, "receipt", local, all...)
}

// facilitatorsFile is hostedFile for some that have another proof.
func facilitatorsFile(t *testing.T, proof string, local bool, all ...*hosted) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "hosted.token"), []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var entries []map[string]any
	for i, h := range all {
		entries = append(entries, map[string]any{"name": "hosted-" + string(rune('a'+i)), "kind": "remote", "url": h.URL, "token_file": "hosted.token",
			"networks": []string{devnet.NetworkID}, "proof": proof})
	}
	if local {
		entries = append(entries, map[string]any{"name": "own", "kind": "local", "networks": []string{devnet.NetworkID}, "proof": "receipt"})
	}
	text, err := json.Marshal(map[string]any{"facilitators": entries})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "facilitators.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "MARKET_FACILITATORS=" + file
}

// What a hosted facilitator can do with a request to settle.

func (s settling) say(success bool, reason string, transaction common.Hash) {
	out := map[string]any{"success": success, "network": devnet.NetworkID, "payer": s.signed.From.Hex(), "transaction": ""}
	if transaction != (common.Hash{}) {
		out["transaction"] = transaction.Hex()
	}
	if reason != "" {
		out["errorReason"] = reason
	}
	_ = json.NewEncoder(s.w).Encode(out)
}

// settles puts it on the chain, and tells the truth.
func settles(s settling) {
	got := s.engine.Settle(s.r.Context(), s.signed)
	s.say(got.Status == chain.StatusSettled, got.Why, got.Transaction)
}

// behind puts it on the chain when the request is answered.
func (s settling) behind() {
	s.late.Go(func() { s.engine.Settle(context.WithoutCancel(s.r.Context()), s.signed) })
}

func replies(status int, text string) func(settling) {
	return func(s settling) {
		s.w.WriteHeader(status)
		_, _ = io.WriteString(s.w, text)
	}
}

func declines(reason string) func(settling) {
	return func(s settling) { s.say(false, reason, common.Hash{}) }
}

// A hostedWorld has one listed service, and facilitators that are all somebody else's; no gas key.
type hostedWorld struct {
	*apptest.World
	service *apptest.Service
	ask     apptest.Asking
}

func newHostedWorld(t *testing.T, local bool, upstream http.HandlerFunc, all ...*hosted) *hostedWorld {
	t.Helper()
	return newHostedWorldWith(t, apptest.Setup{Burst: 600}, []string{hostedFile(t, local, all...)}, local, upstream, all...)
}

func newHostedWorldWith(t *testing.T, setup apptest.Setup, env []string, local bool, upstream http.HandlerFunc, all ...*hosted) *hostedWorld {
	t.Helper()
	if !local {
		env = append(env, "MARKET_GAS_KEY=")
	}
	w := apptest.StartWith(t, setup, env...)
	for _, h := range all {
		h.open(t, w)
	}
	s := w.List(t, "hosted", upstream, nil)
	return &hostedWorld{World: w, service: s, ask: apptest.Ask(s.URL)}
}

// startFails returns why a program does not start.
func startFails(t *testing.T, env ...string) string {
	t.Helper()
	err := apptest.StartFails(t, env...)
	if err == nil {
		t.Fatal("it started")
	}
	return strings.TrimSpace(err.Error())
}
