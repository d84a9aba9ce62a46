package catalog

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"

	"market/internal/call"
)

// ProviderOf says whose service is at a base URL, as far as that tells: what is registered of its host's name, or the network of an address, whatever the
// port. Services of one provider fail together, so they say together what one of them says.
//
// What costs nothing makes nobody another provider: a port does not, nor does a neighbouring address, nor a name below that of a hoster where everybody
// may have as many as they like. So all tenants of one hoster are one provider, and they do fail together when it does.
func ProviderOf(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil || u.Hostname() == "" {
		return baseURL
	}
	name := u.Hostname()
	if address, err := netip.ParseAddr(name); err == nil {
		return call.Network(address).String()
	}
	for {
		suffix, icann := publicsuffix.PublicSuffix(name)
		_, above, below := strings.Cut(suffix, ".")
		if icann || !below { // a domain of the world that is on no list is one like those that are
			return registered(u.Hostname(), suffix)
		}
		name = above
	}
}

// registered is a suffix of a name with the label before it; the name where it has none.
func registered(name, suffix string) string {
	before, found := strings.CutSuffix(name, "."+suffix)
	if !found {
		return name
	}
	return before[strings.LastIndexByte(before, '.')+1:] + "." + suffix
}
