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

// priceMaxUSD bounds what one call may cost. A price above it is a decoy, or base units where dollars belong.
var priceMaxUSD = decimal.NewFromInt(1000)

// Rules is what a listing has to keep to on this installation.
type Rules struct {
	AllowPrivate bool     // development: http and private addresses are accepted as base URLs
	Own          []string // the hosts of this market, in development with their ports: a service must not be there
	Assets       []AssetRule

	stands string // a price that may stay whatever the rules say; empty: none
}

// An AssetRule is what one asset that callers pay with asks of a price.
type AssetRule struct {
	Network  string          // where it is, for people
	Decimals int             // of the asset's base unit
	FloorUSD decimal.Decimal // the lowest price that covers its own settlement and refund
}

// ParsePrice reads a US dollar price and refuses what any of the assets cannot express exactly, and what reaches the floor of none of
// them. Nothing is ever rounded.
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
	if usd.GreaterThan(priceMaxUSD) {
		return decimal.Decimal{}, fmt.Errorf("must be at most %s US dollars", priceMaxUSD)
	}
	var cheapest *AssetRule
	for i, asset := range rules.Assets {
		if _, err := money.FromUSD(usd, asset.Decimals); err != nil {
			return decimal.Decimal{}, fmt.Errorf("must have at most %d digits after the point: %w", asset.Decimals, err)
		}
		if cheapest == nil || asset.FloorUSD.LessThan(cheapest.FloorUSD) {
			cheapest = &rules.Assets[i]
		}
	}
	// A network whose floor is higher is left out of what callers are asked to pay on; one has to remain.
	if cheapest != nil && usd.LessThan(cheapest.FloorUSD) {
		return decimal.Decimal{}, fmt.Errorf("must be at least %s, the floor of %s, which covers the cost of moving the money there and back",
			cheapest.FloorUSD, cheapest.Network)
	}
	return usd, nil
}
