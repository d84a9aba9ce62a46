package catalog

import "github.com/shopspring/decimal"

// What stock clients pay at most for a call unless their owner raised it.
var (
	stockV2MaxUSD = decimal.NewFromInt(1)
	stockV1MaxUSD = decimal.New(10, -2)
)

// AboveStock says whether x402 clients of version 2 refuse the price in their default settings.
func (p Price) AboveStock() bool { return p.USD.GreaterThan(stockV2MaxUSD) }

// Warnings say what is allowed in a listing and may surprise its owner.
func (e *Endpoint) Warnings() []string {
	price, priced := e.Price()
	switch {
	case priced && price.AboveStock():
		return []string{"the price is above $1: x402 clients refuse it in their default settings"}
	case priced && price.USD.GreaterThan(stockV1MaxUSD):
		return []string{"the price is above $0.10: x402 clients of version 1 refuse it in their default settings"}
	}
	return nil
}
