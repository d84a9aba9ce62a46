package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dialTimeout bounds look-up and connect together. The endpoint's own timeout ends a dial earlier.
const dialTimeout = 10 * time.Second

// familyMax is how many addresses of a name are connected to at most, of IPv4 and of IPv6 each.
const familyMax = 8

// A Resolver looks names up. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A dialer connects to services. It looks names up itself, so that it sees the whole answer before anything is connected to, and connects
// only to addresses of that answer: a name that changes its mind gains nothing. The certificate and the Host stay the name's.
type dialer struct {
	resolver Resolver
	vet      func(netip.AddrPort) error // nil in development, where everything goes
	connect  func(ctx context.Context, network, address string) (net.Conn, error)
}

func newDialer(r Resolver, allowPrivate bool) *dialer {
	if r == nil {
		// Not the system's library: its errors do not tell a name that does not exist from a look-up that failed.
		r = &net.Resolver{PreferGo: true}
	}
	connect := &net.Dialer{}
	d := &dialer{resolver: r}
	if !allowPrivate {
		d.vet, connect.ControlContext = vetPublic, guard
	}
	d.connect = connect.DialContext
	return d
}

// DialContext is for http.Transport.
func (d *dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	peers, err := d.peers(ctx, host, uint16(port))
	if err != nil {
		return nil, err
	}
	return connectAny(ctx, peers, d.connect)
}

// peers returns where a host is. One forbidden address spoils the whole answer: whoever points a name at inner and outer addresses means
// the inner ones.
func (d *dialer) peers(ctx context.Context, host string, port uint16) ([]netip.AddrPort, error) {
	addresses, err := d.lookUp(ctx, host)
	if err != nil {
		return nil, err
	}
	peers := make([]netip.AddrPort, 0, len(addresses))
	for _, a := range addresses {
		if d.vet != nil {
			if err := d.vet(netip.AddrPortFrom(a, port)); err != nil {
				return nil, err
			}
		}
		peers = append(peers, netip.AddrPortFrom(a.Unmap(), port))
	}
	return fewOf(peers), nil
}

// fewOf keeps the first addresses of each family: how many strangers we connect to is not for a provider to say.
func fewOf(peers []netip.AddrPort) []netip.AddrPort {
	var four, six int
	return slices.DeleteFunc(peers, func(a netip.AddrPort) bool {
		n := &six
		if a.Addr().Is4() {
			n = &four
		}
		*n++
		return *n > familyMax
	})
}

func (d *dialer) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	name := host
	if d.vet != nil {
		// Rooted: a listed name never means a name inside our own network, which the search list of the machine would try.
		name = strings.TrimSuffix(host, ".") + "."
	}
	addresses, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if _, typed := errors.AsType[*net.DNSError](err); err != nil && !typed {
		// Such as the end of ctx: whatever it is, it happened while the name was looked up.
		err = &net.DNSError{UnwrapErr: err, Err: err.Error(), Name: host, IsTemporary: true}
	}
	if err == nil && len(addresses) == 0 {
		err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return addresses, err
}
