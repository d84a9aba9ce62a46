package delivery

import (
	"net/netip"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/identity"
)

func TestOriginOf_OwnAddressesProvidersAndStrangersAreToldApart(t *testing.T) {
	t.Parallel()
	own := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	service, other := &catalog.Service{Slug: "sold"}, &catalog.Service{Slug: "other"}
	at := map[netip.Addr]bool{netip.MustParseAddr("203.0.113.9"): true, netip.MustParseAddr("192.0.2.9"): true}
	foundAt := func(s *catalog.Service, a netip.Addr) bool { return s == service && at[a] }
	none, key, theirs := common.Address{}, common.Address{0x0a}, common.Address{0x0b}
	scanner := common.Address{0x5c} // stands for a request with the key of one
	office := netip.MustParseAddr("203.0.113.77")
	isOwner := func(r Request) bool {
		return r.Target.Service == service && (r.wallet == key || r.Source == office)
	}
	for name, tt := range map[string]struct {
		service  *catalog.Service
		source   string
		stranger bool
		wallet   common.Address
		want     call.Origin
	}{
		"somebody":                            {service, "198.51.100.1", false, none, call.External},
		"our scanner":                         {service, "192.0.2.5", false, none, call.Own},
		"just outside our range":              {service, "192.0.3.0", false, none, call.External},
		"a stranger's word from our own":      {service, "192.0.2.5", true, none, call.Unattributed},
		"a stranger's word from anywhere":     {service, "198.51.100.1", true, none, call.Unattributed},
		"from where the service is":           {service, "203.0.113.9", false, none, call.Provider},
		"its neighbour is somebody":           {service, "203.0.113.8", false, none, call.External},
		"from where another service is":       {other, "203.0.113.9", false, none, call.External},
		"a stranger's word from another's":    {other, "203.0.113.9", true, none, call.Unattributed},
		"a header more makes no caller of it": {service, "203.0.113.9", true, none, call.Provider},
		"a service of our own is our own":     {service, "192.0.2.9", false, none, call.Own},
		"an address that is not known at all": {service, "0.0.0.0", false, none, call.External},

		"a wallet of somebody":                        {service, "198.51.100.1", false, theirs, call.External},
		"the owner's wallet from anywhere":            {service, "198.51.100.1", false, key, call.Provider},
		"the owner's wallet at another's service":     {other, "198.51.100.1", false, key, call.External},
		"the owner's wallet with a header more":       {service, "198.51.100.1", true, key, call.Provider},
		"the owner's wallet from one of ours":         {service, "192.0.2.5", false, key, call.Own},
		"a header more from one of ours":              {service, "192.0.2.5", true, key, call.Provider},
		"a scanner with its key, from anywhere":       {service, "198.51.100.1", false, scanner, call.Own},
		"with a header more, too":                     {service, "198.51.100.1", true, scanner, call.Own},
		"and from where the service is":               {service, "203.0.113.9", false, scanner, call.Own},
		"where the owner was seen":                    {service, "203.0.113.77", false, none, call.Provider},
		"with the wallet of somebody":                 {service, "203.0.113.77", false, theirs, call.Provider},
		"with a header more":                          {service, "203.0.113.77", true, none, call.Provider},
		"beside where the owner was seen":             {service, "203.0.113.78", false, none, call.External},
		"where the owner was seen, another's service": {other, "203.0.113.77", false, none, call.External},
	} {
		r := Request{Target: catalog.Target{Service: tt.service}, Source: netip.MustParseAddr(tt.source), Stranger: tt.stranger, wallet: tt.wallet, Scanner: tt.wallet == scanner}
		if got := originOf(r, own, foundAt, isOwner); got != tt.want {
			t.Errorf("%s: origin %s, want %s", name, got, tt.want)
		}
	}
}

func TestIsOwner_ByTheWalletAndTheAddressesOfTheAccountAlone(t *testing.T) {
	t.Parallel()
	account, nobody := uuid.New(), uuid.UUID{}
	wallet, none := common.Address{0x0a}, common.Address{}
	office := netip.MustParseAddr("203.0.113.77")
	owners := map[uuid.UUID]identity.Owner{account: {Wallet: wallet, Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::1"), office}}}
	p := &Path{Config: Config{OwnerOf: func(id uuid.UUID) (identity.Owner, bool) {
		owner, known := owners[id]
		return owner, known
	}}}
	for name, tt := range map[string]struct {
		owner  uuid.UUID
		wallet common.Address
		from   string
		want   bool
	}{
		"its wallet":                     {account, wallet, "198.51.100.1", true},
		"another wallet":                 {account, common.Address{0x0b}, "198.51.100.1", false},
		"no wallet":                      {account, none, "198.51.100.1", false},
		"an address of its":              {account, none, "203.0.113.77", true},
		"another of them":                {account, none, "2001:db8::1", true},
		"the network of one":             {account, none, "203.0.113.78", false},
		"at a listing of the operator's": {nobody, wallet, "203.0.113.77", false},
		"no wallet at such a listing":    {nobody, none, "198.51.100.1", false},
		"an account that is not known":   {uuid.New(), wallet, "203.0.113.77", false},
		"nor is its wallet the zero one": {uuid.New(), none, "198.51.100.1", false},
	} {
		r := Request{Target: catalog.Target{Service: &catalog.Service{OwnerID: tt.owner}}, wallet: tt.wallet, Source: netip.MustParseAddr(tt.from)}
		if got := p.isOwner(r); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if (&Path{}).isOwner(r) {
			t.Errorf("%s: somebody is the owner where no account is known", name)
		}
	}
}
