package devnet_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"market/contracts"
	"market/internal/devnet"
)

// readsSlotZero returns what stands in the first slot of its storage.
var readsSlotZero = hexutil.MustDecode("0x5f545f5260205ff3")

func TestStart_PlacesContractsWithTheirStorage(t *testing.T) {
	t.Parallel()
	at := common.HexToAddress("0x00000000000000000000000000000000c0de0001")
	chain := start(t, devnet.Options{Contracts: map[common.Address]types.Account{
		at: {Code: readsSlotZero, Storage: map[common.Hash]common.Hash{{}: common.HexToHash("0x4711")}},
	}})
	answer, err := ethclient.NewClient(dial(t, chain)).CallContract(t.Context(), ethereum.CallMsg{To: &at}, nil)
	must(t, err)
	if got := new(big.Int).SetBytes(answer); got.Cmp(big.NewInt(0x4711)) != 0 {
		t.Errorf("the contract says %s, want what genesis wrote into its storage", got)
	}
}

// Stock clients pay only at this address, so a token that is to be tried with them has to lie there.
func TestStart_LetsAnotherTokenTakeThePlaceOfOurs(t *testing.T) {
	t.Parallel()
	ours := start(t, devnet.Options{})
	other := start(t, devnet.Options{Contracts: map[common.Address]types.Account{devnet.TokenAddress(): {Code: readsSlotZero}}})
	for name, tt := range map[string]struct {
		chain *devnet.Chain
		code  []byte
	}{"ours": {ours, contracts.Token().Runtime}, "another": {other, readsSlotZero}} {
		code, err := ethclient.NewClient(dial(t, tt.chain)).CodeAt(t.Context(), devnet.TokenAddress(), nil)
		must(t, err)
		if hexutil.Encode(code) != hexutil.Encode(tt.code) {
			t.Errorf("%s: %d bytes of code at the token's address, want %d", name, len(code), len(tt.code))
		}
	}
}

func TestChain_Owner_IsWhoOwnsTheToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer, err := b.call(t, b.payee, b.encode(t, "owner()"))
	must(t, err)
	if got := common.BytesToAddress(answer); got != b.Owner() {
		t.Errorf("the token's owner is %s, want %s", got, b.Owner())
	}
}
