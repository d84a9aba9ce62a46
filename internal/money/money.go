// Package money holds amounts without rounding.
//
// Units:
//
//	Amount   base units of one asset (USDC: 1 USDC = 1_000_000); what the chain and Postgres keep
//	decimal  US dollars, only at the edges where people read or type them
//	bps      basis points, 1 % = 100
//
// Nothing here rounds except Split, whose fee is rounded down so that the provider gets the rest. A price that is not a whole number
// of base units is an error.
package money

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/big"
	"regexp"

	"github.com/shopspring/decimal"
)

// ErrAmount is any text or number that is no amount: the one form is a decimal integer without sign, point, exponent or leading zero,
// from 0 to 2^256 - 1.
var ErrAmount = errors.New("not a base-unit amount")

// ErrInexact is a US dollar price that the asset's base units cannot express.
var ErrInexact = errors.New("not a whole number of base units")

var (
	amountForm  = regexp.MustCompile(`^(0|[1-9][0-9]{0,77})$`)
	amountLimit = new(big.Int).Lsh(big.NewInt(1), 256)
)

// An Amount is a whole number of base units of one asset, 0 to 2^256 - 1. The zero value is 0. Values are immutable.
type Amount struct{ v *big.Int }

// ParseAmount reads the one accepted form; anything else is ErrAmount.
func ParseAmount(s string) (Amount, error) {
	if !amountForm.MatchString(s) {
		return Amount{}, ErrAmount
	}
	v, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return Amount{}, ErrAmount
	}
	return FromBig(v)
}

// FromBig copies v; out of range is ErrAmount.
func FromBig(v *big.Int) (Amount, error) {
	if v == nil || v.Sign() < 0 || v.Cmp(amountLimit) >= 0 {
		return Amount{}, ErrAmount
	}
	return Amount{new(big.Int).Set(v)}, nil
}

// FromUnits returns n base units.
func FromUnits(n uint64) Amount { return Amount{new(big.Int).SetUint64(n)} }

// FromUSD converts a price to base units of an asset with so many decimals. ErrInexact where that is no whole number, ErrAmount where
// it is negative or out of range.
func FromUSD(usd decimal.Decimal, decimals int) (Amount, error) {
	// An exponent such as 1e999999999 would be expanded to that many digits below.
	if usd.Exponent() > 77 || usd.Exponent() < -77 || usd.NumDigits() > 78 {
		return Amount{}, ErrAmount
	}
	units := usd.Shift(int32(decimals)) //nolint:gosec // decimals of a token is at most 77, checked with the networks file
	if !units.IsInteger() {
		return Amount{}, ErrInexact
	}
	return FromBig(units.BigInt())
}

// USD returns the amount in whole tokens, which for a US dollar token is US dollars.
func (a Amount) USD(decimals int) decimal.Decimal {
	return decimal.NewFromBigInt(a.Big(), -int32(decimals)) //nolint:gosec // as in FromUSD
}

// Big returns a copy.
func (a Amount) Big() *big.Int {
	if a.v == nil {
		return new(big.Int)
	}
	return new(big.Int).Set(a.v)
}

func (a Amount) String() string { return a.Big().String() }

// Cmp compares as integers: -1, 0 or 1.
func (a Amount) Cmp(b Amount) int { return a.Big().Cmp(b.Big()) }

// IsZero says whether the amount is 0.
func (a Amount) IsZero() bool { return a.v == nil || a.v.Sign() == 0 }

// Add returns a + b; it panics past 2^256 - 1, which sums of real payments cannot reach.
func (a Amount) Add(b Amount) Amount {
	sum, err := FromBig(new(big.Int).Add(a.Big(), b.Big()))
	if err != nil {
		panic("money: sum out of range")
	}
	return sum
}

// Split cuts a price into what the provider gets and our fee: fee = floor(price * bps / 10 000), and the provider gets the rest.
// bps is 0 to 10 000.
func (a Amount) Split(bps int) (share, fee Amount) {
	f := a.Big()
	f.Mul(f, big.NewInt(int64(bps)))
	f.Quo(f, big.NewInt(10_000))
	return Amount{new(big.Int).Sub(a.Big(), f)}, Amount{f}
}

// MarshalText writes the decimal form, so JSON carries amounts as strings.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what ParseAmount accepts.
func (a *Amount) UnmarshalText(text []byte) error {
	v, err := ParseAmount(string(text))
	if err != nil {
		return err
	}
	*a = v
	return nil
}

// Value hands numeric(78,0) to the database as text.
func (a Amount) Value() (driver.Value, error) { return a.String(), nil }

// Scan reads numeric(78,0).
func (a *Amount) Scan(src any) error {
	switch v := src.(type) {
	case string:
		return a.UnmarshalText([]byte(v))
	case int64:
		parsed, err := FromBig(big.NewInt(v))
		*a = parsed
		return err
	case nil:
		return fmt.Errorf("scan amount: %w: null", ErrAmount)
	}
	return fmt.Errorf("scan amount: %w: %T", ErrAmount, src)
}

// Money is how an amount is shown: base units, what of, and the same in US dollars.
type Money struct {
	Amount  Amount `json:"amount"`
	Asset   string `json:"asset"`
	Network string `json:"network"`
	USD     string `json:"usd"`
}
