package chain

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/devnet"
)

func TestNode_Holdings_SaysWhichNoncesTookTheirPart(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	wallet := g.wallet(t, devnet.MoodHonest)
	before := g.balance(t, wallet.address)
	s := g.signed(t, wallet, 0)
	g.pay(t, s)
	balance, used, err := g.node.Holdings(t.Context(), g.asset.Address, wallet.address, []common.Hash{{1}, s.Nonce, {2}})
	if err != nil || !slices.Equal(used, []bool{false, true, false}) || balance.Big().Uint64() != before-s.Value.Big().Uint64() {
		t.Errorf("%s, %v, %v", balance, used, err)
	}
	if balance, used, err := g.node.Holdings(t.Context(), g.asset.Address, wallet.address, nil); err != nil || len(used) != 0 || balance.IsZero() {
		t.Errorf("without nonces: %s, %v, %v", balance, used, err)
	}
	for name, f := range map[string]fakeNode{
		"an answer that is no number": {"eth_call": `"0x01"`},
		"an error":                    {},
	} {
		if _, _, err := dialFake(t, f).Holdings(t.Context(), g.asset.Address, wallet.address, []common.Hash{{1}}); err == nil {
			t.Errorf("%s is taken for a balance", name)
		}
	}
}
