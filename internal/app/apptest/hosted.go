package apptest

import (
	"encoding/json"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/facilitator"
	"market/internal/postgres/pgtest"
)

// SupportsUs is what a facilitator answers to /supported that settles on the chain of the tests.
const SupportsUs = `{"kinds":[{"x402Version":2,"scheme":"exact","network":"eip155:84532"}],"extensions":[],"signers":{}}`

// A Hosted facilitator is somebody else's program behind the standard API: an engine with a gas key and a database of its own. What it says
// to a request to settle can be changed while the test goes on.
type Hosted struct {
	*httptest.Server
	Asked atomic.Int32 // to settle
	Heard atomic.Int32 // anything at all

	address string
	says    atomic.Pointer[http.HandlerFunc]
	out     atomic.Bool
	how     atomic.Pointer[func(Settling)]
	engine  atomic.Pointer[facilitator.Engine]
	late    sync.WaitGroup
}

// NewHosted starts one that says what it supports. Open gives it what it settles with.
func NewHosted(t *testing.T, supports string, how func(Settling)) *Hosted {
	t.Helper()
	h := &Hosted{}
	h.how.Store(&how)
	h.Says(Supports(supports))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /supported", func(w http.ResponseWriter, r *http.Request) { (*h.says.Load())(w, r) })
	mux.HandleFunc("POST /settle", func(w http.ResponseWriter, r *http.Request) {
		h.Asked.Add(1)
		if got := r.Header.Get("Authorization"); got != "Bearer hunter2" {
			t.Errorf("the credential is %q", got)
		}
		(*h.how.Load())(Settling{t, w, r, ReadSigned(t, r.Body), h.engine.Load(), &h.late})
	})
	h.Server = httptest.NewServer(h.metered(mux))
	h.address = h.Listener.Addr().String()
	t.Cleanup(func() { h.late.Wait(); h.Close() })
	return h
}

// metered counts what comes, and turns it away while there is no credit.
func (h *Hosted) metered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Heard.Add(1)
		if h.out.Load() {
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = io.WriteString(w, `{"error":"out of credit"}`)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SetCredit says whether its customer has any left. Without, it answers 402 to whatever it is asked.
func (h *Hosted) SetCredit(left bool) { h.out.Store(!left) }

// Open gives it what it settles with, once there is a chain.
func (h *Hosted) Open(t *testing.T, w *World) {
	t.Helper()
	h.engine.Store(w.TheirEngine(t))
}

// TheirEngine is what somebody else settles with on this chain: an engine with a gas key and a database of its own.
func (w *World) TheirEngine(t testing.TB) *facilitator.Engine {
	t.Helper()
	_, gas := NewKey(t)
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
	return engine
}

// Supports is a good answer to /supported.
func Supports(what string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, what) }
}

// Silence is no answer at all.
func Silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Says changes what it answers to /supported.
func (h *Hosted) Says(how http.HandlerFunc) { h.says.Store(&how) }

// Does changes what it does with a request to settle.
func (h *Hosted) Does(how func(Settling)) { h.how.Store(&how) }

// Reopen answers again at the same address after Close.
func (h *Hosted) Reopen(t *testing.T) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", h.address)
	if err != nil {
		t.Fatal(err)
	}
	again := &httptest.Server{Listener: l, Config: &http.Server{Handler: h.Config.Handler, ReadHeaderTimeout: time.Minute}}
	again.Start()
	t.Cleanup(func() { h.late.Wait(); again.Close() })
}

// HostedFile is the facilitators file for some of them, in their order.
func HostedFile(t *testing.T, local bool, all ...*Hosted) string {
	t.Helper()
	return FacilitatorsFile(t, nil, local, all...)
}

// FacilitatorsFile is HostedFile for some of which each says more about itself than that, or another thing.
func FacilitatorsFile(t testing.TB, says map[string]any, local bool, all ...*Hosted) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "hosted.token"), []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var entries []map[string]any
	for i, h := range all {
		entry := map[string]any{"name": "hosted-" + string(rune('a'+i)), "kind": "remote", "url": h.URL, "token_file": "hosted.token",
			"networks": []string{devnet.NetworkID}, "proof": "receipt"}
		maps.Copy(entry, says)
		entries = append(entries, entry)
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
