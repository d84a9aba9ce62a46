package facilitator

import (
	"math/big"
	"testing"
)

func TestFees_Pays_OnlyWhatIsPaidForInFull(t *testing.T) {
	t.Parallel()
	f := fees{priority: big.NewInt(1), max: big.NewInt(3)}
	const gas = 100 // so that one transaction costs 300
	for balance, want := range map[int64]int64{0: 0, 299: 0, 300: 1, 301: 1, 599: 1, 600: 2, 601: 2, 300 * gasMany: gasMany, 300*gasMany + 300: gasMany} {
		if got := f.pays(gas, big.NewInt(balance)); got != want {
			t.Errorf("%d wei pay for %d transactions, want %d", balance, got, want)
		}
	}
	if got := f.pays(gas, new(big.Int).Lsh(big.NewInt(1), 200)); got != gasMany {
		t.Errorf("a balance beyond all counting pays for %d transactions, want %d", got, int64(gasMany))
	}
}
