package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// sourceOf returns the caller's address: the peer, or from the right the first forwarded address that is not a configured proxy.
// stranger is true where that is not the caller's own: forwarded headers come from a peer that is no configured proxy and are not believed, or a
// proxy does not say for whom it asks. Such traffic cannot be attributed.
func sourceOf(r *http.Request, proxies []netip.Prefix) (source netip.Addr, stranger bool) {
	peer := netip.IPv4Unspecified()
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		peer = at.Addr().Unmap().WithZone("")
	}
	if !within(peer, proxies) {
		return peer, forwarded(r.Header)
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		at, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break // whatever stands left of it was not written by a proxy of ours
		}
		at = at.Unmap().WithZone("")
		if !within(at, proxies) {
			return at, false
		}
	}
	return peer, true // a proxy of ours that does not say for whom it asks
}

// seenAt is the address from which an account is used; none where it is not known to be its own. Calls from there are its provider's and move nothing, and
// behind a proxy that nobody configured the whole world comes from one address.
func (s *Server) seenAt(r *http.Request) netip.Addr {
	source, stranger := sourceOf(r, s.proxies)
	if stranger {
		return netip.Addr{}
	}
	return source
}

func forwarded(h http.Header) bool {
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
		if len(h.Values(name)) > 0 {
			return true
		}
	}
	return false
}

func within(a netip.Addr, of []netip.Prefix) bool {
	return slices.ContainsFunc(of, func(p netip.Prefix) bool { return p.Contains(a) })
}
