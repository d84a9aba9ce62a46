package devnet_test

import (
	"testing"

	"market/internal/devnet"
)

func TestChain_Elapse_IsOneLaterBlock(t *testing.T) {
	t.Parallel()
	c, err := devnet.Start(t.Context(), devnet.Options{Burst: 10_000})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	before, err := c.Head(t.Context())
	must(t, err)
	must(t, c.Elapse(t.Context(), 3600))
	after, err := c.Head(t.Context())
	must(t, err)
	// Blocks of the clock may come before and after it.
	if passed, blocks := after.Time-before.Time, after.Number.Uint64()-before.Number.Uint64(); passed < 3600 || passed > 3660 || blocks < 1 || blocks > 60 {
		t.Errorf("%d seconds passed in %d blocks, want an hour in one", passed, blocks)
	}
	must(t, c.Mint(t.Context(), devnet.TokenAddress(), units(1))) // what is sent is still mined
	if err := c.Elapse(t.Context(), 10_000); err == nil {
		t.Error("the chain got further ahead of the clock than its burst allows")
	}
}
