package reconcile

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/facilitator"
	"market/internal/ledger"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
)

const depth = 2

// A bench is a development chain, a treasury on it, and a reconciler that looks when a test says so.
type bench struct {
	db       *pgxpool.Pool
	net      *devnet.Chain
	chain    *chain.Node
	node     *lossy
	treasury chain.Key
	engine   *facilitator.Engine
	service  catalog.Service
	key      Key
	r        *Reconciler
	short    string // what the wallet is short of, in words
	told     []Change
}

// lossy is a node that leaves out logs, and that fails when it is told to.
type lossy struct {
	*chain.Node
	mu      sync.Mutex
	hides   map[common.Hash]bool
	fails   error
	healthy int // questions for transfers that are answered before it fails
	asked   [][2]uint64
}

func (l *lossy) Transfers(ctx context.Context, asset, wallet common.Address, from, to uint64) ([]chain.Transfer, chain.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != nil {
		if l.healthy == 0 {
			return nil, chain.Head{}, l.fails
		}
		l.healthy--
	}
	l.asked = append(l.asked, [2]uint64{from, to})
	all, last, err := l.Node.Transfers(ctx, asset, wallet, from, to)
	var shown []chain.Transfer
	for _, t := range all {
		if !l.hides[t.Transaction] {
			shown = append(shown, t)
		}
	}
	return shown, last, err
}

func freshKey(t *testing.T) chain.Key {
	t.Helper()
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	k, err := chain.ParseKey(hex.EncodeToString(b[:]))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func networkAt(url string) chain.Network {
	return chain.Network{ID: devnet.NetworkID, ChainID: devnet.ChainID, Confirmations: depth, ServeAtDepth: 1, RPC: []string{url},
		Assets: []chain.Asset{{Address: devnet.TokenAddress(), Symbol: devnet.TokenSymbol, Decimals: devnet.TokenDecimals,
			EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion}}}
}

func dial(t *testing.T, url string) *chain.Node {
	t.Helper()
	node, err := chain.Dial(t.Context(), networkAt(url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	return node
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{db: pgtest.New(t), treasury: freshKey(t)}
	pgtest.Freeze(t, b.db)
	gas := freshKey(t)
	var err error
	if b.net, err = devnet.Start(t.Context(), devnet.Options{Burst: 2_000, Alloc: map[common.Address]*big.Int{
		gas.Address(): new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.net.Close() })
	b.chain = dial(t, b.net.URL())
	b.node = &lossy{Node: b.chain, hides: map[common.Hash]bool{}}
	if b.engine, err = facilitator.NewEngine(b.chain, b.db, gas, facilitator.Options{Treasuries: []common.Address{b.treasury.Address()}}); err != nil {
		t.Fatal(err)
	}
	draft, err := catalog.ParseDraft([]byte(`{"slug":"weather","name":"Weather","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), b.db, func(tx pgx.Tx) (err error) {
		b.service, err = catalog.Store{}.Create(t.Context(), tx, draft)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	b.key = Key{devnet.NetworkID, devnet.TokenAddress(), b.treasury.Address()}
	b.r = b.by(b.node)
	b.mine(t, depth)
	b.look(t)
	b.mine(t, 1)
	return b
}

// by is a reconciler that sees the chain by a node.
func (b *bench) by(node Node) *Reconciler {
	return New(Config{
		DB:       b.db,
		Networks: []Network{{ID: devnet.NetworkID, Depth: depth, Node: node, Assets: []common.Address{devnet.TokenAddress()}, Treasuries: []common.Address{b.treasury.Address()}}},
		Book: func(ctx context.Context, tx pgx.Tx, u Unexplained) error {
			_, err := ledger.Store{}.Post(ctx, tx, ledger.Entry{Network: u.Network, Asset: u.Asset, Treasury: u.Treasury, Kind: ledger.Unexplained, Amount: u.Amount,
				Transfer: ledger.Transfer{Transaction: u.Transaction, LogIndex: u.LogIndex, Block: u.Block}, Reason: "nobody knows", By: "the test"})
			return err
		},
		Short: func(context.Context, Key, money.Amount, uint64) (string, error) { return b.short, nil },
		Owing: func(context.Context, string) ([]Key, error) { return nil, nil },
		Tell:  func(c Change) { b.told = append(b.told, c) },
	})
}

func (b *bench) mine(t *testing.T, blocks uint64) {
	t.Helper()
	if err := b.net.Mine(t.Context(), blocks); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) look(t *testing.T) {
	t.Helper()
	b.fold(t)
	if err := b.r.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// last looks for so long that whatever is different has lasted.
func (b *bench) last(t *testing.T, d time.Duration) {
	t.Helper()
	b.look(t)
	pgtest.Shift(t, b.db, d)
	b.look(t)
	b.look(t)
}

// receive gives the treasury money, and returns the transfer when it is final.
func (b *bench) receive(t *testing.T, units uint64) chain.Transfer {
	t.Helper()
	head, err := b.chain.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.net.Mint(t.Context(), b.key.Treasury, money.FromUnits(units)); err != nil {
		t.Fatal(err)
	}
	b.mine(t, depth)
	return b.newest(t, head.Number)
}

func (b *bench) newest(t *testing.T, after uint64) chain.Transfer {
	t.Helper()
	head, err := b.chain.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := b.chain.Transfers(t.Context(), b.key.Asset, b.key.Treasury, after+1, head.Number)
	if err != nil || len(all) == 0 {
		t.Fatalf("transfers after block %d: %v, %v", after, all, err)
	}
	return all[len(all)-1]
}

// spend moves money out of the treasury as a refund does, and returns the transfer when it is final.
func (b *bench) spend(t *testing.T, to common.Address, units uint64) chain.Transfer {
	t.Helper()
	head, err := b.chain.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.authorize(t, to, units)
	b.mine(t, depth)
	return b.newest(t, head.Number)
}

// authorize has the treasury pay somebody.
func (b *bench) authorize(t *testing.T, to common.Address, units uint64) {
	t.Helper()
	head, err := b.chain.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := chain.Authorization{From: b.key.Treasury, To: to, Value: money.FromUnits(units), ValidBefore: head.Time + 3_600}
	_, _ = rand.Read(a.Nonce[:]) // never fails
	n := b.chain.Network()
	signature, err := b.treasury.SignAuthorization(chain.NewDomain(n.Assets[0], n.ChainID), a)
	if err != nil {
		t.Fatal(err)
	}
	if s := b.engine.Settle(t.Context(), chain.Signed{Asset: b.key.Asset, Authorization: a, Signature: signature}); s.Status != chain.StatusSettled {
		t.Fatalf("settled: %+v", s)
	}
}

const provedSQL = `
UPDATE calls SET state = 'settled', payment_state = 'final', transaction = $2, log_index = $3, block_number = $4, block_hash = $5 WHERE id = $1`

// claim writes the row of a payment, as far as that a call waits for it.
func (b *bench) claim(t *testing.T, payer common.Address, units uint64) call.ID {
	t.Helper()
	id, e := call.NewID(), b.service.Endpoints[0]
	signature, err := chain.ParseSignature(append(bytes.Repeat([]byte{1}, 64), 27))
	if err != nil {
		t.Fatal(err)
	}
	a := chain.Authorization{From: payer, To: b.key.Treasury, Value: money.FromUnits(units), ValidBefore: 1_800_000_000}
	_, _ = rand.Read(a.Nonce[:]) // never fails
	if _, claimed, err := (payment.Store{}).Claim(t.Context(), b.db, payment.Claim{
		ID: id, Network: b.key.Network, Signed: chain.Signed{Asset: b.key.Asset, Signature: signature, Authorization: a},
		Service: b.service.ID, Endpoint: e.ID, PriceRevision: e.Prices[0].Revision, Method: e.Method, Path: e.Path,
		Source: netip.MustParseAddr("192.0.2.1"), Origin: call.External, Owner: uuid.Must(uuid.NewV7()), Lease: time.Minute,
	}); err != nil || !claimed {
		t.Fatalf("claimed = %v, %v", claimed, err)
	}
	return id
}

// prove writes that a transfer has paid a call, for good.
func (b *bench) prove(t *testing.T, id call.ID, by chain.Transfer) {
	t.Helper()
	if _, err := b.db.Exec(t.Context(), provedSQL, id, by.Transaction[:], by.LogIndex, by.BlockNumber, by.BlockHash[:]); err != nil {
		t.Fatal(err)
	}
}

// paid is a transfer with its call.
func (b *bench) paid(t *testing.T, units uint64) (call.ID, chain.Transfer) {
	t.Helper()
	in := b.receive(t, units)
	id := b.claim(t, in.Other, units)
	b.prove(t, id, in)
	return id, in
}

const refundedSQL = `
INSERT INTO refunds (call_id, network, asset, payer, amount, authorizer, nonce, payment_nonce, payment_transaction, state, transaction, log_index, block_number, confirmed_at)
SELECT id, network, asset, $2, amount, treasury, nonce, nonce, transaction, 'confirmed', $3, $4, $5, market_now() FROM calls WHERE id = $1`

// refunded writes that a transfer has given the money of a call back.
func (b *bench) refunded(t *testing.T, id call.ID, by chain.Transfer) {
	t.Helper()
	if _, err := b.db.Exec(t.Context(), refundedSQL, id, by.Other[:], by.Transaction[:], by.LogIndex, by.BlockNumber); err != nil {
		t.Fatal(err)
	}
}

// open returns the kinds of the differences that last.
func (b *bench) open(t *testing.T) (kinds []Kind) {
	t.Helper()
	all, err := Store{}.Open(t.Context(), b.db, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

// want fails where other differences last, or the network is closed or open when it should not be.
func (b *bench) want(t *testing.T, when string, closed bool, kinds ...Kind) {
	t.Helper()
	got := b.open(t)
	if len(got) != len(kinds) {
		t.Errorf("%s: different are %v, want %v; %+v", when, got, kinds, b.told)
	} else {
		for i, k := range kinds {
			if got[i] != k {
				t.Errorf("%s: different are %v, want %v", when, got, kinds)
			}
		}
	}
	board := NewBoard()
	if err := board.Load(t.Context(), b.db); err != nil {
		t.Fatal(err)
	}
	if err := board.Stopped(b.key.Network); (err != nil) != closed {
		t.Errorf("%s: closed: %v, want %v", when, err, closed)
	}
	if err := board.Stopped("eip155:1"); err != nil {
		t.Errorf("%s: another network: %v", when, err)
	}
}

func (b *bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}
