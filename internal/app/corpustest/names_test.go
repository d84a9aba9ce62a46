package corpustest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// domain is that of all services, as if one provider had them: many that fail at once are then no outage of ours.
const domain = ".corpus.test"

var (
	here   = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	atHome = []netip.Addr{netip.MustParseAddr(providerHome)}
	beside = []netip.Addr{netip.MustParseAddr(friend.names)}
)

var (
	errNoSuchName = &net.DNSError{Err: "no such host", IsNotFound: true}
	errNameServer = &net.DNSError{Err: "server misbehaving", IsTemporary: true}
)

// A directory looks the names of services up.
type directory struct {
	mu    sync.Mutex
	looks map[string]func() ([]netip.Addr, error)
}

// lead says how a name is looked up the nth time from now on.
func (d *directory) lead(host string, looks func(n int) ([]netip.Addr, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.looks == nil {
		d.looks = map[string]func() ([]netip.Addr, error){}
	}
	n := 0
	d.looks[host] = func() ([]netip.Addr, error) { n++; return looks(n) }
}

// LookupNetIP implements upstream.Resolver.
func (d *directory) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if look := d.looks[host]; look != nil {
		return look()
	}
	if strings.HasSuffix(host, domain) {
		return here, nil
	}
	return nil, fmt.Errorf("look up %s: %w", host, errNoSuchName)
}

// leads is a name that leads somewhere for the probe, which comes first, and to an error when the service is asked.
func leads(to []netip.Addr, atProbe, atWork error) func(n int) ([]netip.Addr, error) {
	return func(n int) ([]netip.Addr, error) {
		if n == 1 {
			return to, atProbe
		}
		return to, atWork
	}
}

// unlucky is a name that leads somewhere whenever the service is probed, and that our name server does not tell when it is asked.
func unlucky(n int) ([]netip.Addr, error) {
	if n%2 == 1 {
		return here, nil
	}
	return nil, errNameServer
}

// slugOf is a host as a slug.
func slugOf(host string) string {
	return strings.ReplaceAll(strings.TrimSuffix(host, ".test"), ".", "-")
}
