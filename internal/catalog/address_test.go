package catalog

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestPublicAddress_RefusesEveryFormOfAnInnerAddress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		address string
		want    bool
	}{
		"a public address":                 {"93.184.216.34", true},
		"a public IPv6 address":            {"2606:2800:220:1::1", true},
		"a public address, mapped":         {"::ffff:93.184.216.34", true},
		"loopback":                         {"127.0.0.1", false},
		"loopback elsewhere in its range":  {"127.8.8.8", false},
		"IPv6 loopback":                    {"::1", false},
		"loopback, mapped":                 {"::ffff:127.0.0.1", false},
		"metadata, mapped":                 {"::ffff:a9fe:a9fe", false},
		"loopback behind NAT64":            {"64:ff9b::7f00:1", false},
		"loopback behind local NAT64":      {"64:ff9b:1::7f00:1", false},
		"loopback in 6to4":                 {"2002:7f00:1::1", false},
		"loopback, IPv4-compatible":        {"::7f00:1", false},
		"loopback, translated":             {"::ffff:0:7f00:1", false},
		"Teredo":                           {"2001:0:53aa:64c::1", false},
		"unspecified":                      {"0.0.0.0", false},
		"unspecified IPv6":                 {"::", false},
		"this network":                     {"0.1.2.3", false},
		"private 10":                       {"10.0.0.1", false},
		"private 172.16":                   {"172.16.0.1", false},
		"the end of private 172.16":        {"172.31.255.255", false},
		"after private 172.16":             {"172.32.0.1", true},
		"private 192.168":                  {"192.168.1.1", false},
		"unique local":                     {"fd00::1", false},
		"link-local, where metadata lives": {"169.254.169.254", false},
		"IPv6 link-local":                  {"fe80::1", false},
		"with a zone":                      {"fe80::1%eth0", false},
		"site-local":                       {"fec0::1", false},
		"carrier-grade NAT":                {"100.64.0.1", false},
		"the end of carrier-grade NAT":     {"100.127.255.255", false},
		"before carrier-grade NAT":         {"100.63.255.255", true},
		"after carrier-grade NAT":          {"100.128.0.0", true},
		"multicast":                        {"224.0.0.1", false},
		"IPv6 multicast":                   {"ff02::1", false},
		"broadcast":                        {"255.255.255.255", false},
		"reserved":                         {"240.0.0.1", false},
		"benchmarks":                       {"198.18.0.1", false},
		"documentation":                    {"203.0.113.5", false},
	}
	for name, tt := range tests {
		if got := PublicAddress(netip.MustParseAddr(tt.address)); got != tt.want {
			t.Errorf("%s: PublicAddress(%s) = %v, want %v", name, tt.address, got, tt.want)
		}
	}
	if PublicAddress(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}

// B111: an IPv4 address inside an IPv6 one opens nothing, whichever it is. Mapped, it is what it maps to.
func TestPublicAddress_NoFormOfIPv6HidesAnIPv4Address(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inner := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "IPv4 address"))
		plain := PublicAddress(netip.AddrFrom4(inner))
		for name, form := range map[string]struct {
			prefix string
			at     int // where the IPv4 address stands
			want   bool
		}{
			"mapped":          {"::ffff:0:0", 12, plain},
			"IPv4-compatible": {"::", 12, false},
			"translated":      {"::ffff:0:0:0", 12, false},
			"NAT64":           {"64:ff9b::", 12, false},
			"local NAT64":     {"64:ff9b:1::", 12, false},
			"6to4":            {"2002::", 2, false},
			"Teredo":          {"2001::", 4, false},
		} {
			bytes := netip.MustParseAddr(form.prefix).As16()
			copy(bytes[form.at:], inner[:])
			if a := netip.AddrFrom16(bytes); PublicAddress(a) != form.want {
				t.Errorf("%s: PublicAddress(%s) = %v, want %v", name, a, !form.want, form.want)
			}
		}
	})
}

// Two lists are asked and each refusal counts, so neither may hide that the other has lost a range: what ours names, the library refuses by
// itself, from the first address to the last.
func TestPublicAddress_TheLibraryKnowsEveryRangeOfOurs(t *testing.T) {
	t.Parallel()
	for _, p := range notPublic {
		first := p.Masked().Addr()
		for name, a := range map[string]netip.Addr{"first": first, "last": lastOf(p)} {
			if special.SafeAddr(a) == nil {
				t.Errorf("%s: the library lets the %s address %s pass", p, name, a)
			}
			if ordinary(a) {
				t.Errorf("%s: our list lets the %s address %s pass", p, name, a)
			}
		}
	}
	if special.SafeAddr(netip.Addr{}) != nil {
		t.Error("the library refuses the zero address now: the comment on it is out of date")
	}
}

// lastOf returns the last address of a range.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(bytes); i++ {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}
