package catalog

import (
	"net/netip"
	"net/url"

	"golang.org/x/net/publicsuffix"
)

// ProviderOf says whose service is at a base URL, as far as that tells: what is registered of its host's name, or host and port where the host is an
// address or a name that nothing is registered under. Services of one provider fail together, so they say together what one of them says.
func ProviderOf(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" {
		return baseURL
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return u.Host
	}
	registered, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname())
	if err != nil {
		return u.Host
	}
	return registered
}
