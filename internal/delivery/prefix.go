package delivery

import "net/netip"

// PrefixOf cuts an address to what one subscriber usually has, as the recorder does that counts what comes from it.
func PrefixOf(a netip.Addr) netip.Prefix { return prefixOf(a) }
