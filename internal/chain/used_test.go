package chain

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/devnet"
)

func TestNode_Used_SaysWhichNoncesTheAssetHasTaken(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	wallet := g.wallet(t, devnet.MoodHonest)
	s := g.signed(t, wallet, 0)
	g.pay(t, s)
	used, err := g.node.Used(t.Context(), g.asset.Address, wallet.address, []common.Hash{{1}, s.Nonce, {2}})
	if err != nil || !slices.Equal(used, []bool{false, true, false}) {
		t.Errorf("%v, %v", used, err)
	}
	if used, err := g.node.Used(t.Context(), g.asset.Address, wallet.address, nil); err != nil || len(used) != 0 {
		t.Errorf("without nonces: %v, %v", used, err)
	}
	for name, f := range map[string]fakeNode{
		"an answer that is neither yes nor no": {"eth_call": `"0x02"`},
		"an error":                             {},
	} {
		if _, err := dialFake(t, f).Used(t.Context(), g.asset.Address, wallet.address, []common.Hash{{1}}); err == nil {
			t.Errorf("%s is taken for an answer", name)
		}
	}
}
