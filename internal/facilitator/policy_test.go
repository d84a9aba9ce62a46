package facilitator

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"market/internal/chain"
)

func TestFeesFor_StaysUnderTheCeiling(t *testing.T) {
	t.Parallel()
	const ceiling = 100_000_000
	tests := map[string]struct {
		base, suggested int64
		priority, most  int64 // 0: too dear
	}{
		"twice the base fee and the priority":     {10_000_000, 2_000_000, 2_000_000, 22_000_000},
		"no suggestion gets the least":            {10_000_000, 0, priorityMin, 20_000_000 + priorityMin},
		"one below the least gets the least":      {10_000_000, priorityMin - 1, priorityMin, 20_000_000 + priorityMin},
		"the least stays":                         {10_000_000, priorityMin, priorityMin, 20_000_000 + priorityMin},
		"double fits exactly":                     {49_000_000, 2_000_000, 2_000_000, ceiling},
		"double does not fit":                     {49_000_001, 2_000_000, 2_000_000, ceiling},
		"only the present fee fits":               {98_000_000, 2_000_000, 2_000_000, ceiling},
		"not even that":                           {98_000_001, 2_000_000, 0, 0},
		"a priority above the ceiling is refused": {1, ceiling, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := feesFor(chain.Tip{BaseFee: big.NewInt(tt.base), PriorityFee: big.NewInt(tt.suggested)}, big.NewInt(ceiling))
			if tt.most == 0 {
				var dear *FeeError
				if !errors.As(err, &dear) {
					t.Errorf("fees = %v, %v, want a FeeError", got, err)
				}
				return
			}
			if err != nil || got.priority.Int64() != tt.priority || got.max.Int64() != tt.most {
				t.Errorf("fees = %v, %v, %v, want %d, %d", got.priority, got.max, err, tt.priority, tt.most)
			}
		})
	}
}

func TestJudge_BelievesOnlyDeepProof(t *testing.T) {
	t.Parallel()
	want := chain.Expect{Asset: common.Address{1}, From: common.Address{2}, To: common.Address{3}, Nonce: common.Hash{4}}
	receipt := func(depth int, reverted bool, logs []*types.Log) *chain.Receipt {
		return &chain.Receipt{Depth: depth, Reverted: reverted, Logs: logs}
	}
	tests := map[string]struct {
		r    *chain.Receipt
		want verdict
	}{
		"no receipt":                     {nil, verdictWait},
		"proved a block too shallow":     {receipt(2, false, pairOf(want)), verdictWait},
		"proved at the depth":            {receipt(3, false, pairOf(want)), verdictSettled},
		"proved deeper":                  {receipt(4, false, pairOf(want)), verdictSettled},
		"undone a block too shallow":     {receipt(2, true, nil), verdictWait},
		"undone at the depth":            {receipt(3, true, nil), verdictReverted},
		"undone, with logs nevertheless": {receipt(3, true, pairOf(want)), verdictReverted},
		"succeeded without the transfer": {receipt(3, false, nil), verdictUnproved},
	}
	for name, tt := range tests {
		if proof, got := judge(tt.r, want, 3); got != tt.want || (got == verdictSettled) != (proof != chain.Proof{}) {
			t.Errorf("%s: judge = %d, %+v, want %d", name, got, proof, tt.want)
		}
	}
}

// pairOf is what an honest token logs.
func pairOf(e chain.Expect) []*types.Log {
	topic := func(a common.Address) common.Hash { return common.BytesToHash(a[:]) }
	transfer := common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
	used := common.HexToHash("0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5")
	return []*types.Log{
		{Address: e.Asset, TxHash: common.Hash{9}, Index: 0, Topics: []common.Hash{used, topic(e.From), e.Nonce}},
		{Address: e.Asset, TxHash: common.Hash{9}, Index: 1, Topics: []common.Hash{transfer, topic(e.From), topic(e.To)}, Data: make([]byte, 32)},
	}
}

func TestFateOf_ClosesOnlyWhatIsFinal(t *testing.T) {
	t.Parallel()
	final := mined{nonce: 5, block: 90}
	tests := map[string]struct {
		nonce     uint64
		due       bool
		r         *chain.Receipt
		want      fate
		wantBlock uint64
	}{
		"mined at the depth":                     {4, true, &chain.Receipt{BlockNumber: 80, Depth: 3}, fateClosed, 80},
		"mined a block too shallow":              {5, true, &chain.Receipt{BlockNumber: 99, Depth: 2}, fateWait, 0},
		"undone at the depth":                    {4, true, &chain.Receipt{BlockNumber: 80, Depth: 3, Reverted: true}, fateClosed, 80},
		"another transaction has its nonce":      {4, true, nil, fateClosed, 90},
		"another may have it, not finally":       {5, false, nil, fateWait, 0},
		"not mined and due":                      {5, true, nil, fateResend, 0},
		"not mined and in the hands of a settle": {6, false, nil, fateWait, 0},
	}
	for name, tt := range tests {
		got, block := fateOf(aged{sending{nonce: tt.nonce}, tt.due}, tt.r, final, 3)
		if got != tt.want || block != tt.wantBlock {
			t.Errorf("%s: fate = %d at %d, want %d at %d", name, got, block, tt.want, tt.wantBlock)
		}
	}
}

func TestNewEngine_RefusesAWrongSetUp(t *testing.T) {
	t.Parallel()
	gas, treasury := newKey(t), newKey(t)
	good := func() Options { return Options{Treasuries: []common.Address{treasury.Address()}} }
	change := func(f func(*Options)) Options { o := good(); f(&o); return o }
	tests := map[string]struct {
		gas  chain.Key
		opts Options
		ok   bool
	}{
		"as it should be":             {gas, good(), true},
		"no gas key":                  {chain.Key{}, good(), false},
		"no treasury":                 {gas, Options{}, false},
		"for others":                  {gas, Options{Recipients: func(common.Address) bool { return true }}, true},
		"for others, with a treasury": {gas, change(func(o *Options) { o.Recipients = func(common.Address) bool { return true } }), false},
		"one key for both":            {treasury, good(), false},
		"the highest gas limit":       {gas, change(func(o *Options) { o.GasLimit = gasLimitMax }), true},
		"a higher gas limit":          {gas, change(func(o *Options) { o.GasLimit = gasLimitMax + 1 }), false},
		"a gas limit for nothing":     {gas, change(func(o *Options) { o.GasLimit = 20_999 }), false},
		"a ceiling of nothing":        {gas, change(func(o *Options) { o.FeeCeiling = new(big.Int) }), false},
		"ready for minus one":         {gas, change(func(o *Options) { o.ReadySettlements = -1 }), false},
		"a wait of less than nothing": {gas, change(func(o *Options) { o.WaitMax = -1 }), false},
	}
	for name, tt := range tests {
		if err := tt.opts.withDefaults().check(tt.gas); (err == nil) != tt.ok {
			t.Errorf("%s: %v, want accepted %v", name, err, tt.ok)
		}
	}
}
