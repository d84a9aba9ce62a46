package catalog

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/shopspring/decimal"

	"market/internal/money"
)

// priceForm is the one way to write a price: digits with at most one point between digits. No sign, exponent, currency sign, comma,
// underscore or leading zero. It is also what numeric(38, 18) holds.
var priceForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?$`)

// Rules is what a listing has to keep to on this installation.
type Rules struct {
	AllowPrivate bool // development: http and private addresses are accepted as base URLs
	Assets       []AssetRule
}

// An AssetRule is what one asset that callers pay with asks of a price.
type AssetRule struct {
	Decimals int             // of the asset's base unit
	FloorUSD decimal.Decimal // the lowest price that covers its own settlement and refund
}

// ParsePrice reads a US dollar price and refuses what any of the assets cannot express exactly. Nothing is ever rounded.
func ParsePrice(text string, rules Rules) (decimal.Decimal, error) {
	if !priceForm.MatchString(text) {
		return decimal.Decimal{}, errors.New(`must be a plain decimal number of US dollars, such as "0.002"`)
	}
	usd, err := decimal.NewFromString(text)
	if err != nil {
		return decimal.Decimal{}, fmt.Errorf("parse price: %w", err)
	}
	if !usd.IsPositive() {
		return decimal.Decimal{}, errors.New("must be more than 0")
	}
	for _, asset := range rules.Assets {
		if _, err := money.FromUSD(usd, asset.Decimals); err != nil {
			return decimal.Decimal{}, fmt.Errorf("must have at most %d digits after the point: %w", asset.Decimals, err)
		}
		if usd.LessThan(asset.FloorUSD) {
			return decimal.Decimal{}, fmt.Errorf("must be at least %s, which covers the cost of moving the money", asset.FloorUSD)
		}
	}
	return usd, nil
}
