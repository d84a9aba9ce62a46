package money

import (
	"database/sql/driver"
	"fmt"
	"math/big"
	"strings"
)

// A Signed is a whole number of base units of one asset that may be below zero, as far as an Amount reaches on either side: what books hold, where a debit is
// positive and a credit negative. The zero value is 0. Values are immutable.
type Signed struct{ v *big.Int }

// ParseSigned reads the form of an Amount with a minus sign before it, or without; anything else is ErrAmount.
func ParseSigned(s string) (Signed, error) {
	digits, negative := strings.CutPrefix(s, "-")
	a, err := ParseAmount(digits)
	if err != nil || negative && a.IsZero() {
		return Signed{}, ErrAmount
	}
	if negative {
		return a.Credit(), nil
	}
	return a.Debit(), nil
}

// Debit is the amount as it is, Credit below zero.
func (a Amount) Debit() Signed  { return Signed{a.Big()} }
func (a Amount) Credit() Signed { return Signed{new(big.Int).Neg(a.Big())} }

// Big returns a copy.
func (s Signed) Big() *big.Int {
	if s.v == nil {
		return new(big.Int)
	}
	return new(big.Int).Set(s.v)
}

func (s Signed) String() string { return s.Big().String() }

// Sign is -1, 0 or 1.
func (s Signed) Sign() int { return s.Big().Sign() }

// Cmp compares as integers: -1, 0 or 1.
func (s Signed) Cmp(o Signed) int { return s.Big().Cmp(o.Big()) }

// Add returns s + o, Neg - s.
func (s Signed) Add(o Signed) Signed { return Signed{new(big.Int).Add(s.Big(), o.Big())} }
func (s Signed) Neg() Signed         { return Signed{new(big.Int).Neg(s.Big())} }

// MarshalText writes the decimal form, so JSON carries it as a string.
func (s Signed) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Value hands numeric(78,0) to the database as text.
func (s Signed) Value() (driver.Value, error) { return s.String(), nil }

// Scan reads numeric(78,0).
func (s *Signed) Scan(src any) error {
	switch v := src.(type) {
	case string:
		parsed, err := ParseSigned(v)
		if err != nil {
			return fmt.Errorf("scan signed amount %q: %w", v, err)
		}
		*s = parsed
		return nil
	case int64:
		*s = Signed{big.NewInt(v)}
		return nil
	}
	return fmt.Errorf("scan signed amount: %w: %T", ErrAmount, src)
}
