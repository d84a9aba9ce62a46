package delivery

import (
	"net/netip"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/catalog"
)

// originOf says whose traffic a request is. A call is asked only after its service was probed from this process, so by then it is known where the
// service is; a refusal from before that may be measured as somebody's, and moves nothing either way.
func (p *Path) originOf(r Request) call.Origin {
	return originOf(r, p.Own, p.Upstream.FoundAt, p.isOwner)
}

// isOwner says whether a request comes from who owns the listing that it is for: it is paid or signed in with that account's wallet, or comes from an
// address at which the account was seen. It is that very address, and not the network around it.
func (p *Path) isOwner(r Request) bool {
	if p.OwnerOf == nil {
		return false
	}
	owner, known := p.OwnerOf(r.Target.Service.OwnerID)
	byWallet := r.wallet != (common.Address{}) && r.wallet == owner.Wallet
	return known && (byWallet || slices.Contains(owner.Addresses, r.Source))
}

// originOf is the one place where it is decided whose traffic a request is, and with that whether it is evidence. own are our own addresses, Request.Scanner
// says that a scanner of ours showed its key, foundAt whether a service answers at an address, and isOwner whether its owner pays, signs in or was seen there. All of them are read from memory: what they do
// not know yet is a caller like any other.
//
// A provider stays one whatever headers it sends: else one of them would make its calls count, and a success of its own clear its strikes. Where the
// service answers, or its owner was seen, behind a proxy that its callers come through as well, and that we do not know, nothing of what they do counts:
// that is the safe side.
func originOf(r Request, own []netip.Prefix, foundAt func(*catalog.Service, netip.Addr) bool, isOwner func(Request) bool) call.Origin {
	switch {
	case r.Scanner, !r.Stranger && slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Contains(r.Source) }):
		return call.Own
	case foundAt(r.Target.Service, r.Source), isOwner(r):
		return call.Provider
	case r.Stranger:
		return call.Unattributed
	}
	return call.External
}

// IsScanner says whether a token is the key of one of our own scanners. What it says goes into Request.Scanner.
func (p *Path) IsScanner(token string) bool { return p.Scanner != nil && p.Scanner(token, p.Now()) }
