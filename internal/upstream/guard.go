package upstream

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"

	"market/internal/catalog"
)

// A forbiddenAddressError is a connection that was not made, because a service's name leads into somebody's own network.
type forbiddenAddressError struct{ address string }

func (e *forbiddenAddressError) Error() string {
	return fmt.Sprintf("address %s is not a public one", e.address)
}

// guard runs for every connection, on the address that is about to be connected to. There is no second look-up after it, so a name that
// changes its mind between check and use gains nothing.
func guard(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return &forbiddenAddressError{network + " " + address}
	}
	a, err := netip.ParseAddrPort(address)
	if err != nil || !catalog.PublicAddress(a.Addr()) {
		return &forbiddenAddressError{address}
	}
	return nil
}
