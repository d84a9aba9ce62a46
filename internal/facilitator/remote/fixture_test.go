package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
	"market/internal/money"
	"market/internal/postgres/pgtest"
	"market/internal/source"
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

// settle asks for a settlement in a turn of its own, if there is one.
func settle(ctx context.Context, c *Client) Answer {
	turn, err := c.Reserve(ctx, source.Settlement, 1)
	if err != nil {
		return Answer{Kind: Unsent, Err: err}
	}
	defer turn.End(0)
	return c.Settle(ctx, turn, network, signed)
}

// A guarded desk is counted: what it refuses is kept in a database, whose time stands still until it is shifted.
type guarded struct {
	*desk
	*Client
	db       *pgxpool.Pool
	registry *source.Registry
	said     atomic.Int32 // how often it was asked what it supports
}

// guard returns a desk with its client, which has asked nothing.
func guard(t *testing.T, runsOut source.RunsOut, shapes ...source.Shape) *guarded {
	t.Helper()
	g := &guarded{desk: newDesk(t, says(200, settled(nil))), db: pgtest.New(t)}
	g.supports(says(200, supportsBoth))
	pgtest.Freeze(t, g.db)
	of := source.Source{Name: source.FacilitatorName("hosted"), Kind: source.KindFacilitator, RunsOut: runsOut, Shapes: shapes}
	g.registry = source.New(g.db, time.Now, []source.Source{of}, source.Hooks{OnError: func(err error) { t.Error(err) }})
	g.load(t)
	meter := g.registry.Of(of.Name)
	g.Client = g.stranger(t, func(o *Options) { o.Source, o.Meter = meter.Source(), meter })
	return g
}

func (g *guarded) supports(h http.HandlerFunc) {
	g.desk.supports(func(w http.ResponseWriter, r *http.Request) {
		g.said.Add(1)
		h(w, r)
	})
}

func (g *guarded) answers(h http.HandlerFunc) { g.settle.Store(&h) }

// shift moves market time, and has the process hear of it.
func (g *guarded) shift(t *testing.T, d time.Duration) {
	t.Helper()
	pgtest.Shift(t, g.db, d)
	g.load(t)
}

func (g *guarded) load(t *testing.T) {
	t.Helper()
	if err := g.registry.Load(t.Context(), g.db); err != nil {
		t.Fatal(err)
	}
}

// out is why it takes no work now; zero: it does.
func (g *guarded) out() source.Why {
	limit, _ := errors.AsType[*source.LimitError](g.Limited())
	if limit == nil {
		return 0
	}
	return limit.Why
}
