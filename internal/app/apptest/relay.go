package apptest

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"market/internal/chain"
	"market/internal/devnet"
)

// Relay puts an authorization on the chain by somebody else's hand, past everything of ours, and returns when it has moved the money.
func (w *World) Relay(t testing.TB, s chain.Signed) {
	t.Helper()
	_, relayer := NewKey(t)
	if err := w.Chain.FundGas(t.Context(), relayer.Address(), big.NewInt(1e18)); err != nil {
		t.Fatal(err)
	}
	client, err := ethclient.DialContext(t.Context(), w.Chain.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	to := s.Asset
	tx, err := relayer.SignTransaction(types.NewTx(&types.DynamicFeeTx{
		ChainID: big.NewInt(devnet.ChainID), GasTipCap: big.NewInt(1e9), GasFeeCap: big.NewInt(500e9), Gas: 200_000, To: &to, Data: chain.Calldata(s),
	}), devnet.ChainID)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.SendTransaction(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	var receipt *types.Receipt
	Eventually(t, "somebody else's transaction is mined", func() bool {
		receipt, err = client.TransactionReceipt(t.Context(), tx.Hash())
		return err == nil
	})
	if receipt.Status != types.ReceiptStatusSuccessful {
		t.Fatalf("somebody else's transaction %s was undone", tx.Hash())
	}
}

// Lapse lets the time of an authorization pass on the chain, and brings the proof of that to its depth.
func (w *World) Lapse(t testing.TB, until uint64, depth uint64) {
	t.Helper()
	head, err := w.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if head.Time <= until {
		if err := w.Chain.Elapse(t.Context(), until-head.Time+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Chain.Mine(t.Context(), depth); err != nil {
		t.Fatal(err)
	}
}
