package catalog

import (
	"github.com/shopspring/decimal"

	"market/internal/refusal"
)

// ParsePriceChange reads the body of a request that changes an endpoint: {"price_usd": "0.003"}. Nothing else can be changed yet, and what
// cannot is refused.
func ParsePriceChange(body []byte, rules Rules) (decimal.Decimal, error) {
	var problems []refusal.Field
	f, err := openForm(body, &problems)
	if err != nil {
		return decimal.Decimal{}, err
	}
	usd := f.price("price_usd", rules)
	f.end()
	return usd, refused(problems)
}
