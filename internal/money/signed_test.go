package money_test

import (
	"errors"
	"testing"

	"market/internal/money"
)

func TestParseSigned_TakesOneFormOnly(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"0": true, "7": true, "-7": true, "-0": false, "--7": false, "+7": false, "-": false, "": false, "-07": false, "-1e4": false} {
		s, err := money.ParseSigned(text)
		if ok != (err == nil) || ok && s.String() != text || !ok && !errors.Is(err, money.ErrAmount) {
			t.Errorf("%q: %s, %v", text, s, err)
		}
	}
}

func TestSigned_ADebitAndItsCreditAreNothing(t *testing.T) {
	t.Parallel()
	a := money.FromUnits(10_000)
	if sum := a.Debit().Add(a.Credit()); sum.Sign() != 0 || sum.Cmp(money.Signed{}) != 0 {
		t.Errorf("the sum is %s", sum)
	}
	if a.Credit().Neg().Cmp(a.Debit()) != 0 || a.Credit().Sign() != -1 || a.Credit().Cmp(a.Debit()) != -1 || a.Credit().String() != "-10000" {
		t.Errorf("a credit of %s is %s", a, a.Credit())
	}
}
