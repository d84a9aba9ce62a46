package money_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"market/internal/money"
)

func TestParseAmount_TakesOneFormOnly(t *testing.T) {
	t.Parallel()
	limit := new(big.Int).Lsh(big.NewInt(1), 256)
	for name, tt := range map[string]struct {
		text string
		ok   bool
	}{
		"zero":                   {"0", true},
		"a plain number":         {"10000", true},
		"the largest":            {new(big.Int).Sub(limit, big.NewInt(1)).String(), true},
		"one more":               {limit.String(), false},
		"a number of 400 digits": {"1" + strings.Repeat("0", 400), false},
		"a leading zero":         {"010000", false},
		"an exponent":            {"1e4", false},
		"hex":                    {"0x2710", false},
		"a space":                {" 10000", false},
		"a newline at the end":   {"10000\n", false},
		"a point":                {"10000.0", false},
		"nothing":                {"", false},
		"a plus":                 {"+10000", false},
		"a minus":                {"-1", false},
		"minus zero":             {"-0", false},
		"full-width digits":      {"１００", false},
		"an underscore":          {"1_000", false},
	} {
		a, err := money.ParseAmount(tt.text)
		if (err == nil) != tt.ok {
			t.Errorf("%s: ParseAmount(%.20q) = %v, want ok %v", name, tt.text, err, tt.ok)
		}
		if tt.ok && a.String() != tt.text {
			t.Errorf("%s: reads back as %s", name, a)
		}
	}
}

func TestFromUSD_IsExactOrAnError(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		usd      decimal.Decimal
		decimals int
		want     string
		err      error
	}{
		"a cent in six decimals":              {decimal.RequireFromString("0.01"), 6, "10000", nil},
		"one base unit":                       {decimal.RequireFromString("0.000001"), 6, "1", nil},
		"below one base unit":                 {decimal.RequireFromString("0.0000001"), 6, "", money.ErrInexact},
		"eighteen decimals":                   {decimal.RequireFromString("0.10"), 18, "100000000000000000", nil},
		"negative":                            {decimal.RequireFromString("-1"), 6, "", money.ErrAmount},
		"an exponent that would eat memory":   {decimal.New(1, 999_999_999), 6, "", money.ErrAmount},
		"an exponent the other way":           {decimal.New(1, -999_999_999), 6, "", money.ErrAmount},
		"more dollars than 256 bits of units": {decimal.New(1, 76), 18, "", money.ErrAmount},
	} {
		got, err := money.FromUSD(tt.usd, tt.decimals)
		if !errors.Is(err, tt.err) || (err == nil && got.String() != tt.want) {
			t.Errorf("%s: FromUSD(…, %d) = %s, %v, want %s, %v", name, tt.decimals, got, err, tt.want, tt.err)
		}
	}
}

func TestAmount_USD_IsTheWayBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := money.FromUnits(rapid.Uint64().Draw(t, "units"))
		decimals := rapid.IntRange(0, 36).Draw(t, "decimals")
		back, err := money.FromUSD(a.USD(decimals), decimals)
		if err != nil || back.Cmp(a) != 0 {
			t.Fatalf("%s with %d decimals comes back as %s, %v", a, decimals, back, err)
		}
	})
}

// B52: the fee is a share of the price and has no minimum, so it is never more than the price.
func FuzzAmount_Split_AddsUpAndRoundsTheFeeDown(f *testing.F) {
	f.Add(uint64(10_000), uint16(500))
	f.Add(uint64(1), uint16(9_999))
	f.Fuzz(func(t *testing.T, units uint64, bps uint16) {
		bps %= 10_001
		price := money.FromUnits(units)
		share, fee := price.Split(int(bps))
		if share.Add(fee).Cmp(price) != 0 {
			t.Errorf("Split(%d, %d) = %s + %s", units, bps, share, fee)
		}
		exact := new(big.Int).Mul(price.Big(), big.NewInt(int64(bps)))
		low := new(big.Int).Mul(fee.Big(), big.NewInt(10_000))
		high := new(big.Int).Add(low, big.NewInt(10_000))
		if low.Cmp(exact) > 0 || high.Cmp(exact) <= 0 {
			t.Errorf("fee of Split(%d, %d) = %s is not the floor", units, bps, fee)
		}
	})
}
