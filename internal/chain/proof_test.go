package chain

import (
	"math"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"market/internal/money"
)

func wanted() Expect {
	a := goldenAuthorization()
	return Expect{Asset: usdc().Address, From: a.From, To: a.To, Value: a.Value, Nonce: a.Nonce}
}

// pairOf is what an honest token logs for a transfer, from a log index on.
func pairOf(e Expect, index uint) []*types.Log {
	at := types.Log{
		Address: e.Asset, TxHash: common.Hash{1}, BlockHash: common.Hash{2}, BlockNumber: 7,
	}
	used, transfer := at, at
	used.Index, transfer.Index = index, index+1
	used.Topics = []common.Hash{topicAuthorizationUsed, topicOf(e.From), e.Nonce}
	transfer.Topics = []common.Hash{topicTransfer, topicOf(e.From), topicOf(e.To)}
	transfer.Data = common.BigToHash(e.Value.Big()).Bytes()
	return []*types.Log{&used, &transfer}
}

func TestProofIn_FindsThePairWhereverItStands(t *testing.T) {
	t.Parallel()
	other := wanted()
	other.Nonce, other.Value = common.Hash{9}, money.FromUnits(1)
	foreign := &types.Log{Address: common.Address{5}, TxHash: common.Hash{1}, BlockHash: common.Hash{2}, BlockNumber: 7, Index: 3}
	tests := map[string]struct {
		logs  []*types.Log
		index uint
	}{
		"alone":                              {pairOf(wanted(), 4), 5},
		"at the start of the block":          {pairOf(wanted(), 0), 1},
		"behind a log of another contract":   {append([]*types.Log{foreign}, pairOf(wanted(), 4)...), 5},
		"behind another authorization":       {append(pairOf(other, 4), pairOf(wanted(), 6)...), 7},
		"before another authorization":       {append(pairOf(wanted(), 4), pairOf(other, 6)...), 5},
		"at the last index that is storable": {pairOf(wanted(), math.MaxInt32-1), math.MaxInt32},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := Proof{Transaction: common.Hash{1}, LogIndex: tt.index, BlockNumber: 7, BlockHash: common.Hash{2}}
			if got, ok := ProofIn(tt.logs, wanted()); !ok || got != want {
				t.Errorf("ProofIn = %+v, %v, want %+v", got, ok, want)
			}
		})
	}
}

// B59: one transaction may carry several payments; each has a proof of its own.
func TestProofIn_TwoAuthorizationsInOneTransactionAreTwoProofs(t *testing.T) {
	t.Parallel()
	first, second := wanted(), wanted()
	second.Nonce = common.Hash{9}
	logs := append(pairOf(first, 4), pairOf(second, 6)...)
	a, ok := ProofIn(logs, first)
	b, also := ProofIn(logs, second)
	if !ok || !also || a.LogIndex != 5 || b.LogIndex != 7 {
		t.Errorf("proofs at %d (%v) and %d (%v), want 5 and 7", a.LogIndex, ok, b.LogIndex, also)
	}
}

// B73: that a transaction did not revert proves nothing.
func TestProofIn_IsNotFooled(t *testing.T) {
	t.Parallel()
	// Each lie changes the honest pair of logs.
	tests := map[string]func(used, transfer *types.Log) []*types.Log{
		"no logs at all":          func(_, _ *types.Log) []*types.Log { return nil },
		"the nonce is only used":  func(u, _ *types.Log) []*types.Log { return []*types.Log{u} },
		"the money only moves":    func(_, tr *types.Log) []*types.Log { return []*types.Log{tr} },
		"the order is swapped":    func(u, tr *types.Log) []*types.Log { return []*types.Log{tr, u} },
		"order and index swapped": func(u, tr *types.Log) []*types.Log { u.Index, tr.Index = tr.Index, u.Index; return []*types.Log{tr, u} },
		"another contract moves":  change(func(_, tr *types.Log) { tr.Address[0] ^= 1 }),
		"another contract uses":   change(func(u, _ *types.Log) { u.Address[0] ^= 1 }),
		"both are another's":      change(func(u, tr *types.Log) { u.Address[0] ^= 1; tr.Address[0] ^= 1 }),
		"another value":           change(func(_, tr *types.Log) { tr.Data[31] ^= 1 }),
		"a value plus 2^255":      change(func(_, tr *types.Log) { tr.Data[0] ^= 0x80 }),
		"another recipient":       change(func(_, tr *types.Log) { tr.Topics[2][31] ^= 1 }),
		"a recipient with dirt":   change(func(_, tr *types.Log) { tr.Topics[2][0] = 1 }),
		"another sender":          change(func(_, tr *types.Log) { tr.Topics[1][31] ^= 1 }),
		"another authorizer":      change(func(u, _ *types.Log) { u.Topics[1][31] ^= 1 }),
		"another nonce":           change(func(u, _ *types.Log) { u.Topics[2][31] ^= 1 }),
		"another event moves":     change(func(_, tr *types.Log) { tr.Topics[0][0] ^= 1 }),
		"another event uses":      change(func(u, _ *types.Log) { u.Topics[0][0] ^= 1 }),
		"a gap in the index":      change(func(_, tr *types.Log) { tr.Index++ }),
		"the same index twice":    change(func(_, tr *types.Log) { tr.Index-- }),
		"another transaction":     change(func(_, tr *types.Log) { tr.TxHash[0] ^= 1 }),
		"no transaction":          change(func(u, tr *types.Log) { u.TxHash, tr.TxHash = common.Hash{}, common.Hash{} }),
		"another block":           change(func(_, tr *types.Log) { tr.BlockHash[0] ^= 1 }),
		"another block number":    change(func(_, tr *types.Log) { tr.BlockNumber++ }),
		"a transfer taken back":   change(func(_, tr *types.Log) { tr.Removed = true }),
		"a use taken back":        change(func(u, _ *types.Log) { u.Removed = true }),
		"a topic more":            change(func(_, tr *types.Log) { tr.Topics = append(tr.Topics, common.Hash{}) }),
		"a topic less":            change(func(_, tr *types.Log) { tr.Topics = tr.Topics[:2] }),
		"a use with a topic more": change(func(u, _ *types.Log) { u.Topics = append(u.Topics, common.Hash{}) }),
		"a use with data":         change(func(u, _ *types.Log) { u.Data = []byte{1} }),
		"no topics":               change(func(u, tr *types.Log) { u.Topics, tr.Topics = nil, nil }),
		"no data":                 change(func(_, tr *types.Log) { tr.Data = nil }),
		"short data":              change(func(_, tr *types.Log) { tr.Data = tr.Data[1:] }),
		"long data":               change(func(_, tr *types.Log) { tr.Data = append(tr.Data, 0) }),
		"an index past storage":   change(func(u, tr *types.Log) { u.Index, tr.Index = math.MaxInt32, math.MaxInt32+1 }),
		"an index that overflows": change(func(u, tr *types.Log) { u.Index, tr.Index = math.MaxUint, 0 }),
		"a block past storage":    change(func(u, tr *types.Log) { u.BlockNumber, tr.BlockNumber = math.MaxInt64+1, math.MaxInt64+1 }),
		"a missing log":           func(_, tr *types.Log) []*types.Log { return []*types.Log{nil, tr} },
		"something in between": func(u, tr *types.Log) []*types.Log {
			between := *tr
			between.Address = common.Address{5}
			tr.Index++
			return []*types.Log{u, &between, tr}
		},
		// With one nonce and two values, the chain takes either; the other one's transfer in the same transaction is of another authorization.
		"the value moves elsewhere in the transaction": func(u, tr *types.Log) []*types.Log {
			small := *tr
			small.Data = common.BigToHash(big.NewInt(1)).Bytes()
			tr.Index++
			return []*types.Log{u, &small, tr}
		},
	}
	for name, lie := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := pairOf(wanted(), 4)
			if got, ok := ProofIn(lie(pair[0], pair[1]), wanted()); ok {
				t.Errorf("ProofIn = %+v, want none", got)
			}
		})
	}
}

func change(f func(used, transfer *types.Log)) func(used, transfer *types.Log) []*types.Log {
	return func(used, transfer *types.Log) []*types.Log {
		f(used, transfer)
		return []*types.Log{used, transfer}
	}
}
