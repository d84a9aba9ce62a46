package money

import (
	"math"
	"testing"

	"github.com/shopspring/decimal"
)

func TestMicroUSD_IsNeverCountedShort(t *testing.T) {
	t.Parallel()
	for usd, want := range map[string]int64{"0": 0, "0.000001": 1, "0.0000010000001": 2, "0.0000000001": 1, "12.5": 12_500_000, "9223372036854775807": math.MaxInt64} {
		if got := MicroUSD(decimal.RequireFromString(usd)); got != want {
			t.Errorf("%s USD are %d, want %d", usd, got, want)
		}
	}
	for decimals, want := range map[int]int64{0: 1_000_001_000_000, 6: 1_000_001, 7: 100_001, 18: 1} {
		if got := FromUnits(1_000_001).MicroUSD(decimals); got != want {
			t.Errorf("1000001 units of %d decimals are %d, want %d", decimals, got, want)
		}
	}
}
