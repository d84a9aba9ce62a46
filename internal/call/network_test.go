package call

import (
	"net/netip"
	"testing"
)

func TestNetwork_IsWhatOneSubscriberHas(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.255":          "192.0.2.0/24",
		"192.0.3.0":            "192.0.3.0/24",
		"2001:db8:1:ffff::1":   "2001:db8:1::/48",
		"2001:db8:2::":         "2001:db8:2::/48",
		"fe80::1%eth0":         "fe80::/48",
		"::ffff:192.0.2.255":   "192.0.2.0/24",
		"::ffff:198.51.100.77": "198.51.100.0/24",
	} {
		if got := Network(netip.MustParseAddr(address)); got != netip.MustParsePrefix(want) {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got := Network(netip.Addr{}); got != netip.MustParsePrefix("0.0.0.0/24") {
		t.Errorf("no address: %s, want 0.0.0.0/24", got)
	}
}
