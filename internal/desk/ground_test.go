package desk

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/facilitator"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
)

const (
	token = "a-token-of-the-tests-only"
	funds = 1_000_000 // base units that the payer has
	price = 1_234     // base units
)

// A ground is a real chain and a real database, a payer with money, a shop to pay, and a gas key.
type ground struct {
	*devnet.Chain
	db                         *pgxpool.Pool
	network                    chain.Network
	node                       *chain.Node
	payer, shop, gas, stranger chain.Key // the stranger has gas and nothing else
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{payer: newKey(t), shop: newKey(t), gas: newKey(t), stranger: newKey(t), db: pgtest.New(t)}
	ether := new(big.Int).Mul(big.NewInt(1e18), big.NewInt(100))
	var err error
	g.Chain, err = devnet.Start(t.Context(), devnet.Options{
		Burst: 1_000, Alloc: map[common.Address]*big.Int{g.gas.Address(): ether, g.stranger.Address(): ether},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	g.network = chain.Network{
		ID: devnet.NetworkID, V1Name: devnet.V1Name, ChainID: devnet.ChainID, RPC: []string{g.URL()}, Confirmations: 2, ServeAtDepth: 1,
		Assets: []chain.Asset{{
			Address: devnet.TokenAddress(), Symbol: devnet.TokenSymbol, Decimals: devnet.TokenDecimals,
			EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion,
		}},
	}
	if g.node, err = chain.Dial(t.Context(), g.network); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.node.Close)
	if err := g.Mint(t.Context(), g.payer.Address(), money.FromUnits(funds)); err != nil {
		t.Fatal(err)
	}
	return g
}

func newKey(t *testing.T) chain.Key {
	t.Helper()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	k, err := chain.ParseKey(hex.EncodeToString(raw))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// shopKey is the key that may settle to the shop.
func (g *ground) shopKey() Key {
	return Key{Name: "shop", SHA256: sha256.Sum256([]byte(token)), Recipients: []common.Address{g.shop.Address()}, PerMinute: 1_000}
}

// desk opens a door with an engine of its own, as each replica has one; keys default to the shop's.
func (g *ground) desk(t *testing.T, change func(*Config), keys ...Key) string {
	t.Helper()
	if keys == nil {
		keys = []Key{g.shopKey()}
	}
	engine, err := facilitator.NewEngine(g.node, g.db, g.gas, facilitator.Options{Recipients: Recipients(keys)})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{DB: g.db, Rails: []Rail{{Network: g.network, Node: g.node, Engine: engine}}, Keys: keys, Signer: g.gas.Address().Hex(), Log: zerolog.Nop()}
	if change != nil {
		change(&c)
	}
	server := httptest.NewServer(New(c).Public().Handler)
	t.Cleanup(server.Close)
	return server.URL
}

// now is the time of the chain.
func (g *ground) now(t *testing.T) uint64 {
	t.Helper()
	head, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return head.Time
}

// authorize signs a payment of the price to the shop, valid for two minutes of chain time, after changing it.
func (g *ground) authorize(t *testing.T, change func(*chain.Authorization)) chain.Signed {
	t.Helper()
	a := chain.Authorization{From: g.payer.Address(), To: g.shop.Address(), Value: money.FromUnits(price), ValidBefore: g.now(t) + 120}
	_, _ = rand.Read(a.Nonce[:]) // never fails
	if change != nil {
		change(&a)
	}
	signature, err := g.payer.SignAuthorization(chain.NewDomain(g.network.Assets[0], devnet.ChainID), a)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Signed{Asset: g.network.Assets[0].Address, Authorization: a, Signature: signature}
}

// An object is JSON that a test changes before it is sent.
type object map[string]any

func (o object) at(path ...string) object {
	for _, name := range path {
		o = o[name].(object)
	}
	return o
}

// body is what a seller's server sends for an authorization, in either version.
func (g *ground) body(version payment.Version, s chain.Signed, change func(object)) object {
	terms := object{
		"scheme": "exact", "network": g.network.ID, "amount": strconv.Itoa(price), "asset": s.Asset.Hex(), "payTo": g.shop.Address().Hex(),
		"maxTimeoutSeconds": 120, "extra": object{"name": devnet.TokenName, "version": devnet.TokenVersion},
	}
	payload := object{"x402Version": int(version), "payload": object{
		"signature": hexutil.Encode(s.Signature[:]),
		"authorization": object{
			"from": s.From.Hex(), "to": s.To.Hex(), "value": s.Value.String(), "nonce": s.Nonce.Hex(),
			"validAfter": strconv.FormatUint(s.ValidAfter, 10), "validBefore": strconv.FormatUint(s.ValidBefore, 10),
		},
	}}
	switch version {
	case payment.V1:
		terms["network"], terms["maxAmountRequired"] = g.network.V1Name, terms["amount"]
		terms["resource"], terms["description"], terms["mimeType"] = "https://shop.test/echo", "", ""
		delete(terms, "amount")
		payload["scheme"], payload["network"] = "exact", g.network.V1Name
	case payment.V2:
		accepted := object{}
		for name, value := range terms {
			accepted[name] = value
		}
		payload["accepted"] = accepted
	}
	o := object{"x402Version": int(version), "paymentPayload": payload, "paymentRequirements": terms}
	if change != nil {
		change(o)
	}
	return o
}

// An answer is what a request got, as an independent client reads it.
type answer struct {
	status int
	header http.Header
	raw    string

	IsValid        bool
	InvalidReason  string
	InvalidMessage string
	Success        bool
	ErrorReason    string
	ErrorMessage   string
	Transaction    string
	Network        string
	Payer          string
}

// code is the code of a no, on either route.
func (a answer) code() string { return a.InvalidReason + a.ErrorReason }

func (a answer) yes() bool { return a.IsValid || a.Success }

// ask posts a body with the shop's token.
func ask(t *testing.T, url string, body any) answer {
	t.Helper()
	raw, ok := body.(string)
	if !ok {
		raw = string(encode(t, body))
	}
	return askAs(t, url, "Bearer "+token, raw)
}

func askAs(t *testing.T, url, authorization, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return send(t, r)
}

func send(t *testing.T, r *http.Request) answer {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, raw: string(raw)}
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("%d: %s is no JSON: %v", a.status, raw, err)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q, want no-store", got)
	}
	return a
}

// transfers is what the shop got, in payments.
func (g *ground) transfers(t *testing.T) int {
	t.Helper()
	balance, err := g.BalanceOf(t.Context(), g.shop.Address())
	if err != nil {
		t.Fatal(err)
	}
	return int(balance.Big().Int64() / price)
}

// sent counts the transactions that our gas key has signed.
func (g *ground) sent(t *testing.T) int {
	t.Helper()
	var n int
	if err := g.db.QueryRow(t.Context(), `SELECT count(*) FROM engine_transactions`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sendAs puts an authorization on the chain from another account, and returns when it is mined.
func (g *ground) sendAs(t *testing.T, k chain.Key, s chain.Signed) common.Hash {
	t.Helper()
	tip, err := g.node.Tip(t.Context(), k.Address())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := k.SignTransaction(types.NewTx(&types.DynamicFeeTx{
		ChainID: big.NewInt(devnet.ChainID), Nonce: tip.PendingNonce, Gas: 250_000, To: &s.Asset, Data: chain.Calldata(s),
		GasTipCap: big.NewInt(1e9), GasFeeCap: big.NewInt(100e9),
	}), devnet.ChainID)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.node.Send(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stranger's transaction is mined", func() bool {
		used, err := g.node.AuthorizationUsed(t.Context(), s.Asset, s.From, s.Nonce)
		return err == nil && used
	})
	return tx.Hash()
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	patience := time.NewTimer(time.Minute)
	defer patience.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-patience.C:
			t.Fatalf("it did not come to this: %s", what)
		case <-tick.C:
		}
	}
}

var versions = []payment.Version{payment.V1, payment.V2}

// nameIn is the network as a version names it.
func (g *ground) nameIn(version payment.Version) string {
	return []string{g.network.V1Name, g.network.ID}[slices.Index(versions, version)]
}

// Head of a clock is a block of that time.
func (c clock) Head(context.Context) (chain.Head, error) { return chain.Head{Time: uint64(c)}, nil }

// record sends a request without a connection.
func record(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	h.ServeHTTP(w, r)
	return w
}

// away is a node that does not answer.
type away struct{}

func (away) Head(context.Context) (chain.Head, error) { return chain.Head{}, errOurs }

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
