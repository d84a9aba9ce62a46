package chain

import (
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"market/internal/devnet"
	"market/internal/money"
)

// A ground is a real chain of one test, our view of it, and three keys: a payer with money, a payee and one that pays gas.
type ground struct {
	*devnet.Chain
	node              *Node
	asset             Asset
	payer, payee, gas Key
}

const funds = 1_000_000 // base units that the payer has

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{payer: newTestKey(t), payee: newTestKey(t), gas: newTestKey(t)}
	wei := new(big.Int).Mul(big.NewInt(1e18), big.NewInt(100))
	var err error
	g.Chain, err = devnet.Start(t.Context(), devnet.Options{Burst: 30, Alloc: map[common.Address]*big.Int{g.gas.Address(): wei}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	g.asset = Asset{
		Address: devnet.TokenAddress(), Symbol: devnet.TokenSymbol, Decimals: devnet.TokenDecimals,
		EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion,
	}
	g.node, err = Dial(t.Context(), Network{
		ID: devnet.NetworkID, ChainID: devnet.ChainID, RPC: []string{g.URL()}, Confirmations: 1, ServeAtDepth: 1, Assets: []Asset{g.asset},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.node.Close)
	if err := g.Mint(t.Context(), g.payer.Address(), money.FromUnits(funds)); err != nil {
		t.Fatal(err)
	}
	return g
}

func newTestKey(t *testing.T) Key {
	t.Helper()
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return parseKey(t, hex.EncodeToString(b[:]))
}

// authorize signs a payment of some units, valid for ten minutes of chain time, after changing it.
func (g *ground) authorize(t *testing.T, units uint64, change func(*Authorization)) Signed {
	t.Helper()
	head, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := Authorization{From: g.payer.Address(), To: g.payee.Address(), Value: money.FromUnits(units), ValidBefore: head.Time + 600}
	if _, err := rand.Read(a.Nonce[:]); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&a)
	}
	signature, err := g.payer.SignAuthorization(NewDomain(g.asset, devnet.ChainID), a)
	if err != nil {
		t.Fatal(err)
	}
	return Signed{Asset: g.asset.Address, Authorization: a, Signature: signature}
}

// pay puts an authorization on the chain and returns the mined transaction.
func (g *ground) pay(t *testing.T, s Signed) *Receipt {
	t.Helper()
	raw, hash := g.transaction(t, s)
	if err := g.node.Send(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	return g.mined(t, hash)
}

func (g *ground) transaction(t *testing.T, s Signed) (raw []byte, hash common.Hash) {
	t.Helper()
	tip, err := g.node.Tip(t.Context(), g.gas.Address())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := g.gas.SignTransaction(types.NewTx(&types.DynamicFeeTx{
		Nonce: tip.PendingNonce, GasTipCap: big.NewInt(1e9), GasFeeCap: big.NewInt(100e9), Gas: 250_000, To: &s.Asset, Data: Calldata(s),
	}), devnet.ChainID)
	if err != nil {
		t.Fatal(err)
	}
	raw, err = tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw, tx.Hash()
}

func (g *ground) mined(t *testing.T, hash common.Hash) *Receipt {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		// The node may be in trouble for a moment while it indexes a new block.
		receipts, err := g.node.Receipts(t.Context(), []common.Hash{hash})
		if err == nil && receipts[0] != nil {
			return receipts[0]
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("transaction %s is not mined: %v", hash, err)
		case <-ticker.C:
		}
	}
}
