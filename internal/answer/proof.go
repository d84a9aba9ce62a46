package answer

import (
	"crypto/subtle"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// SourceWindow is for how long after a call its source address alone proves who asks. Addresses change hands and are shared, so it is no longer
// than a caller needs that was cut off.
const SourceWindow = 10 * time.Minute

// Facts are what is known of the caller of an answered call.
type Facts struct {
	Payer      common.Address
	Identifier string     // empty where the payment had no name
	Source     netip.Addr // that the call came from
	Age        time.Duration
}

// Asking is what a request for a kept answer shows of itself.
type Asking struct {
	Identifier string         // of the payment that was sent, empty for none
	SignedIn   common.Address // by a sign-in that holds, zero for none
	Source     netip.Addr
}

// A Proof is why somebody is taken for the caller.
type Proof int

const (
	_            Proof = iota // invalid
	Unproved                  // nothing tells the caller from an onlooker
	ByIdentifier              // it knows the name of the payment
	BySignIn                  // it has the payer's key
	BySource                  // it asks from where the call came, shortly after
)

// Redeems says whether the answer may be given out.
func (p Proof) Redeems() bool {
	switch p {
	case ByIdentifier, BySignIn, BySource:
		return true
	case Unproved:
		return false
	}
	return false
}

func (p Proof) String() string {
	switch p {
	case Unproved:
		return "unproved"
	case ByIdentifier:
		return "identifier"
	case BySignIn:
		return "sign-in"
	case BySource:
		return "source"
	}
	return "invalid proof"
}

// Prove returns the strongest proof that a request has. An empty member of either side proves nothing.
func Prove(f Facts, a Asking) Proof {
	switch {
	case a.SignedIn != (common.Address{}) && a.SignedIn == f.Payer:
		return BySignIn
	case f.Identifier != "" && subtle.ConstantTimeCompare([]byte(a.Identifier), []byte(f.Identifier)) == 1:
		return ByIdentifier
	case a.Source.IsValid() && f.Source.IsValid() && a.Source.Unmap() == f.Source.Unmap() && f.Age <= SourceWindow:
		return BySource
	}
	return Unproved
}
