package delivery

import (
	"net/netip"
	"testing"

	"market/internal/call"
	"market/internal/catalog"
)

func TestOriginOf_OwnAddressesProvidersAndStrangersAreToldApart(t *testing.T) {
	t.Parallel()
	own := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	service, other := &catalog.Service{Slug: "sold"}, &catalog.Service{Slug: "other"}
	at := map[netip.Addr]bool{netip.MustParseAddr("203.0.113.9"): true, netip.MustParseAddr("192.0.2.9"): true}
	foundAt := func(s *catalog.Service, a netip.Addr) bool { return s == service && at[a] }
	for name, tt := range map[string]struct {
		service  *catalog.Service
		source   string
		stranger bool
		want     call.Origin
	}{
		"somebody":                            {service, "198.51.100.1", false, call.External},
		"our scanner":                         {service, "192.0.2.5", false, call.Own},
		"just outside our range":              {service, "192.0.3.0", false, call.External},
		"a stranger's word from our own":      {service, "192.0.2.5", true, call.Unattributed},
		"a stranger's word from anywhere":     {service, "198.51.100.1", true, call.Unattributed},
		"from where the service is":           {service, "203.0.113.9", false, call.Provider},
		"its neighbour is somebody":           {service, "203.0.113.8", false, call.External},
		"from where another service is":       {other, "203.0.113.9", false, call.External},
		"a stranger's word from another's":    {other, "203.0.113.9", true, call.Unattributed},
		"a header more makes no caller of it": {service, "203.0.113.9", true, call.Provider},
		"a service of our own is our own":     {service, "192.0.2.9", false, call.Own},
		"an address that is not known at all": {service, "0.0.0.0", false, call.External},
	} {
		r := Request{Target: catalog.Target{Service: tt.service}, Source: netip.MustParseAddr(tt.source), Stranger: tt.stranger}
		if got := originOf(r, own, foundAt); got != tt.want {
			t.Errorf("%s: origin %s, want %s", name, got, tt.want)
		}
	}
}
