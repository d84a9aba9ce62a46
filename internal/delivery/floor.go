package delivery

import (
	"fmt"
	"slices"

	"market/internal/catalog"
)

// offered returns the rails on which callers are asked to pay a price: those whose floor it reaches. A listing was taken because it reached one. Where
// the operator raised the floors since, so that it reaches none, it stays for sale on all of them: a change of our configuration takes nobody's
// listing off the shelf, its owner is warned, and the operator who wants it gone says so with a reason.
func (p *Path) offered(price catalog.Price) []Rail {
	var rails []Rail
	for _, r := range p.Rails {
		if !price.USD.LessThan(r.Network.FloorUSD) {
			rails = append(rails, r)
		}
	}
	if len(rails) == 0 {
		return p.Rails
	}
	return rails
}

// OfferedOn says whether callers are asked to pay a price on a network, by either of its names.
func (p *Path) OfferedOn(network string) func(price catalog.Price) bool {
	return func(price catalog.Price) bool {
		return slices.ContainsFunc(p.offered(price), func(r Rail) bool { return r.Network.Named(network) })
	}
}

// belowFloor warns the owner of a price that is below a floor.
func (p *Path) belowFloor(price catalog.Price) []string {
	var warnings []string
	for _, r := range p.Rails {
		if price.USD.LessThan(r.Network.FloorUSD) {
			warnings = append(warnings, fmt.Sprintf("the price is below %s, the floor of %s: callers are not asked to pay there", r.Network.FloorUSD, r.Network.ID))
		}
	}
	if len(warnings) == len(p.Rails) && len(warnings) > 0 {
		return []string{"the price is below the floor of every network, which was raised: it covers the cost of moving the money no more, and has to be raised"}
	}
	return warnings
}
