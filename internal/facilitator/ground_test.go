package facilitator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/postgres/pgtest"
)

const (
	funds    = 1_000_000 // base units that the payer has
	testTime = 60 * time.Second
)

// A ground is a real chain and a real database of one test, a payer with money, our treasury and our gas key.
type ground struct {
	*devnet.Chain
	db      *pgxpool.Pool
	network chain.Network
	node    *chain.Node

	payer, treasury, gas chain.Key
	stranger             chain.Key // has gas and nothing else
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{payer: newKey(t), treasury: newKey(t), gas: newKey(t), stranger: newKey(t), db: pgtest.New(t)}
	ether := new(big.Int).Mul(big.NewInt(1e18), big.NewInt(100))
	var err error
	g.Chain, err = devnet.Start(t.Context(), devnet.Options{
		Burst: 30, Alloc: map[common.Address]*big.Int{g.gas.Address(): ether, g.stranger.Address(): ether},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	g.network = chain.Network{
		ID: devnet.NetworkID, ChainID: devnet.ChainID, RPC: []string{g.URL()}, Confirmations: 2, ServeAtDepth: 1,
		Assets: []chain.Asset{{
			Address: devnet.TokenAddress(), Symbol: devnet.TokenSymbol, Decimals: devnet.TokenDecimals,
			EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion,
		}},
	}
	g.node = g.dial(t, g.URL())
	if err := g.Mint(t.Context(), g.payer.Address(), money.FromUnits(funds)); err != nil {
		t.Fatal(err)
	}
	return g
}

func newKey(t *testing.T) chain.Key {
	t.Helper()
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	k, err := chain.ParseKey(hex.EncodeToString(b[:]))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (g *ground) dial(t *testing.T, url string) *chain.Node {
	t.Helper()
	network := g.network
	network.RPC = []string{url}
	n, err := chain.Dial(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func (g *ground) engine(t *testing.T, node *chain.Node, change func(*Options)) *Engine {
	t.Helper()
	opts := Options{Treasuries: []common.Address{g.treasury.Address()}, SweepEvery: 50 * time.Millisecond}
	if change != nil {
		change(&opts)
	}
	e, err := NewEngine(node, g.db, g.gas, opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// authorize signs a payment to the treasury, valid for ten minutes of chain time, after changing it.
func (g *ground) authorize(t *testing.T, units uint64, change func(*chain.Authorization)) chain.Signed {
	t.Helper()
	head, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := chain.Authorization{From: g.payer.Address(), To: g.treasury.Address(), Value: money.FromUnits(units), ValidBefore: head.Time + 600}
	if _, err := rand.Read(a.Nonce[:]); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&a)
	}
	signature, err := g.payer.SignAuthorization(chain.NewDomain(g.network.Assets[0], devnet.ChainID), a)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Signed{Asset: g.network.Assets[0].Address, Authorization: a, Signature: signature}
}

// sendAs puts an authorization into the pool from another account, offering a priority fee in gwei.
func (g *ground) sendAs(t *testing.T, k chain.Key, s chain.Signed, priority int64) common.Hash {
	t.Helper()
	return g.send(t, k, s.Asset, chain.Calldata(s), priority)
}

func (g *ground) send(t *testing.T, k chain.Key, to common.Address, data []byte, priority int64) common.Hash {
	t.Helper()
	tip, err := g.node.Tip(t.Context(), k.Address())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := k.SignTransaction(types.NewTx(&types.DynamicFeeTx{
		ChainID: big.NewInt(devnet.ChainID), Nonce: tip.PendingNonce, Gas: 250_000, To: &to, Data: data,
		GasTipCap: big.NewInt(priority * 1e9), GasFeeCap: big.NewInt((priority + 100) * 1e9),
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
	return tx.Hash()
}

func (g *ground) settle(t *testing.T, e *Engine, s chain.Signed) chain.Settlement {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	return e.Settle(ctx, s)
}

// interrupted settles an authorization and gives up once something holds. The transaction is stored by then, and not mined.
func (g *ground) interrupted(t *testing.T, e *Engine, s chain.Signed, once func() bool) chain.Settlement {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan chain.Settlement, 1)
	go func() { done <- e.Settle(ctx, s) }()
	eventually(t, "the settlement is under way", once)
	cancel()
	got := <-done
	if got.Status != chain.StatusUnknown || got.Why != "settlement_pending" || got.Transaction == (common.Hash{}) || got.PayerFault {
		t.Fatalf("settlement = %+v, want unknown, settlement_pending and the transaction", got)
	}
	return got
}

// stored says whether the engines have stored so many transactions.
func (g *ground) stored(t *testing.T, want int) func() bool {
	return func() bool {
		all, _ := g.transactions(t)
		return all == want
	}
}

// wantSettled checks a settlement against the chain itself.
func (g *ground) wantSettled(t *testing.T, s chain.Signed, got chain.Settlement) {
	t.Helper()
	if got.Status != chain.StatusSettled || got.Why != "" || got.Err != nil || got.Transaction != got.Proof.Transaction {
		t.Fatalf("settlement = %+v, want it settled", got)
	}
	proof, _, found, err := g.node.Locate(t.Context(), s.Expect(), got.Transaction)
	if err != nil || !found || proof != got.Proof {
		t.Fatalf("on the chain: %+v, %v, %v, want %+v", proof, found, err, got.Proof)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not in %v: %s", testTime, what)
		case <-ticker.C:
		}
	}
}

// pooled says whether so many transactions of an account wait in the node's pool.
func (g *ground) pooled(t *testing.T, account common.Address, want uint64) func() bool {
	return func() bool {
		tip, err := g.node.Tip(t.Context(), account)
		return err == nil && tip.PendingNonce-tip.MinedNonce >= want
	}
}

func (g *ground) poolHas(t *testing.T, account common.Address, want uint64) {
	t.Helper()
	eventually(t, "transactions in the pool", g.pooled(t, account, want))
}

// waiting waits until so many settlements of some engines look for their receipts.
func waiting(t *testing.T, want int, engines ...*Engine) {
	t.Helper()
	eventually(t, "settlements wait for their receipts", func() bool {
		sum := 0
		for _, e := range engines {
			e.watch.mu.Lock()
			sum += len(e.watch.waiting)
			e.watch.mu.Unlock()
		}
		return sum == want
	})
}

func (g *ground) balance(t *testing.T, account common.Address) string {
	t.Helper()
	b, err := g.BalanceOf(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// transactions counts what the engines stored, and how much of it is open.
func (g *ground) transactions(t *testing.T) (all, open int) {
	t.Helper()
	const countSQL = `SELECT count(*), count(*) FILTER (WHERE mined_block IS NULL) FROM engine_transactions`
	if err := g.db.QueryRow(t.Context(), countSQL).Scan(&all, &open); err != nil {
		t.Fatal(err)
	}
	return all, open
}
