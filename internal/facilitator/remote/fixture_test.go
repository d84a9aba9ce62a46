package remote

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
	"market/internal/money"
)

const (
	hash  = "0x5e77aa0000000000000000000000000000000000000000000000000000000001"
	payer = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

	// The golden vector of protocol/x402.md, which signed is.
	signature = "0xbf8545a00715e30fafafb560715291e0df679c515ec176d684ba56e794b2bf813995fd27c191691a22314c8feea0607609267369a318ad20b287bc00c684d0c51b"

	supportsBoth = `{"kinds":[{"x402Version":2,"scheme":"exact","network":"eip155:84532"},{"x402Version":1,"scheme":"exact","network":"base-sepolia"}]}`
	supportsV1   = `{"kinds":[{"x402Version":1,"scheme":"exact","network":"base-sepolia"}]}`
)

var (
	network = chain.Network{
		ID: "eip155:84532", ChainID: 84532, V1Name: "base-sepolia", Confirmations: 2, ServeAtDepth: 1,
		Assets: []chain.Asset{{Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), Symbol: "USDC", Decimals: 6,
			EIP712Name: "USDC", EIP712Version: "2"}},
	}
	signed = chain.Signed{Asset: network.Assets[0].Address, Signature: parsed(signature), Authorization: chain.Authorization{
		From: common.HexToAddress(payer), To: common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"), Value: money.FromUnits(12345),
		ValidBefore: 1_800_000_000, Nonce: common.HexToHash("0xabababababababababababababababababababababababababababababababab"),
	}}
)

func parsed(hex string) chain.Signature {
	s, err := chain.ParseSignature(hexutil.MustDecode(hex))
	if err != nil {
		panic(err)
	}
	return s
}

// says answers one call with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// A desk is a facilitator that says what the test tells it to.
type desk struct {
	*httptest.Server
	settle, verify, supported atomic.Pointer[http.HandlerFunc]
	asked                     atomic.Int32 // for a settlement
}

func newDesk(t *testing.T, settle http.HandlerFunc) *desk {
	t.Helper()
	d := &desk{}
	supported := says(http.StatusOK, supportsBoth)
	d.settle.Store(&settle)
	d.supported.Store(&supported)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /x402/supported", func(w http.ResponseWriter, r *http.Request) { (*d.supported.Load())(w, r) })
	mux.HandleFunc("POST /x402/verify", func(w http.ResponseWriter, r *http.Request) { (*d.verify.Load())(w, r) })
	mux.HandleFunc("POST /x402/settle", func(w http.ResponseWriter, r *http.Request) {
		d.asked.Add(1)
		// Only a server that has read the request notices that its client leaves.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		(*d.settle.Load())(w, r)
	})
	d.Server = httptest.NewServer(mux)
	t.Cleanup(d.Close)
	return d
}

func (d *desk) supports(h http.HandlerFunc) { d.supported.Store(&h) }

// client returns one that has asked what the facilitator supports.
func (d *desk) client(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	c := d.stranger(t, change)
	if err := c.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// stranger returns a client that has asked nothing.
func (d *desk) stranger(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	o := Options{Name: "hosted", URL: d.URL + "/x402/", Resource: "https://market.example"}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A clock stands still until it is moved.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.nanos.Load()) }
func (c *clock) move(d time.Duration) { c.nanos.Add(int64(d)) }
func (c *clock) option(o *Options)    { o.Now = c.now }
