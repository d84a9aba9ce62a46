package catalog

import (
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"
)

// publicPorts are the ports that a public service may have. Others are as likely somebody's database.
var publicPorts = []uint16{443, 8443}

// PublicPort says whether a stranger's service may have a port.
func PublicPort(port uint16) bool { return slices.Contains(publicPorts, port) }

// special is a list of special ranges that others keep: IPv4 by IANA's registry, IPv6 by what is inside 2000::/3 and not special there. It
// has all of ours, and the ranges of AS112 and AMT beside them. Ours is asked all the same: each refusal counts, so that a new version of
// either cannot open what the other closes. The library alone takes the zero address for a public one, and does not look at what an
// IPv4-mapped address maps to.
var special = ssrf.New(ssrf.WithAnyPort())

// notPublic lists what netip's own predicates do not know: ranges that are global unicast by form and lead inside somebody's network,
// or carry an IPv4 address that may.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT; clouds put their metadata services here too
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), // IPv4-compatible
	netip.MustParsePrefix("::ffff:0:0:0/96"),
	netip.MustParsePrefix("64:ff9b::/96"), // NAT64
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), // Teredo and other protocol assignments
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// PublicAddress says whether an address is one that a stranger's service may have: reachable over the public internet, and not a form
// that carries another address inside. It is asked when a listing is written and again at every dial, because a name can move. An
// IPv4-mapped address is judged by what it maps to: the resolver gives IPv4 addresses in that form, too.
func PublicAddress(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	return ordinary(a) && special.SafeAddr(a) == nil
}

// ordinary is our own opinion of an address.
func ordinary(a netip.Addr) bool {
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
