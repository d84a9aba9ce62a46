package money

import (
	"math"

	"github.com/shopspring/decimal"
)

// MicroUSD is an amount of US dollars in millionths, rounded up: what is counted against a limit is never counted short. More than an int64 holds is the most
// that it holds.
func MicroUSD(usd decimal.Decimal) int64 {
	micro := usd.Shift(6).Ceil()
	if micro.GreaterThan(decimal.NewFromInt(math.MaxInt64)) {
		return math.MaxInt64
	}
	return micro.IntPart()
}

// MicroUSD is what an amount of an asset is worth whose unit is a dollar, in millionths, rounded up.
func (a Amount) MicroUSD(decimals int) int64 {
	return MicroUSD(decimal.NewFromBigInt(a.Big(), -int32(decimals))) //nolint:gosec // at most 77
}
