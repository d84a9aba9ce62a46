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

// vetPublic says whether a stranger's service may be where a connection is about to go.
func vetPublic(to netip.AddrPort) error {
	if !catalog.PublicAddress(to.Addr()) || !catalog.PublicPort(to.Port()) {
		return &forbiddenAddressError{to.String()}
	}
	return nil
}

// guard runs for every connection, on the address that is about to be connected to, after the dialer has vetted all that the name leads to.
// There is no look-up after it, so whatever goes wrong before it, nothing inner is ever connected to.
func guard(_ context.Context, network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return &forbiddenAddressError{network + " " + address}
	}
	return vetPublic(to)
}
