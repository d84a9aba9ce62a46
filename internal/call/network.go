package call

import "net/netip"

// Network cuts an address to what one subscriber usually has: a /24, or a /48 of IPv6. Where no address is known it is 0.0.0.0/24.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap() // else all of IPv4 would be one /48
	switch {
	case !a.IsValid():
		return netip.PrefixFrom(netip.IPv4Unspecified(), 24)
	case a.Is4():
		return netip.PrefixFrom(a, 24).Masked()
	}
	return netip.PrefixFrom(a, 48).Masked()
}
