package identity

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

// A Kind is by what somebody showed who asks.
type Kind int

const (
	Nobody     Kind = iota // no credential, or none of ours
	AdminToken             // the operator's token, which is of no account
	Session                // a wallet that signed in
	Key                    // an API key of an account
)

// A Scope is something that an API key may be made for.
type Scope string

const (
	ServicesRead  Scope = "services:read"  // see the account's services as their owner
	ServicesWrite Scope = "services:write" // list, change and retire them
	AccountRead   Scope = "account:read"   // the account, its plan and what it uses
)

// Scopes returns every scope that permits something: all but Scanner.
func Scopes() []Scope { return []Scope{ServicesRead, ServicesWrite, AccountRead} }

// A Principal is who asks. The zero value is nobody.
type Principal struct {
	Kind    Kind
	Account uuid.UUID      // of a session or a key
	Wallet  common.Address // of the account
	Scopes  []Scope        // of a key
	Admin   bool           // by the token, or by a session whose wallet has the role now; never by a key
	Expires time.Time      // of the session; zero: it does not
	KeyID   uuid.UUID      // of a key
}

// May says whether somebody may use an account for something: a session may everything of its account, a key what it was made for. The admin token is
// no account.
func (p Principal) May(scope Scope) bool {
	switch p.Kind {
	case Session:
		return true
	case Key:
		return scope != "" && slices.Contains(p.Scopes, scope)
	case AdminToken, Nobody:
	}
	return false
}

// Owns says whether something of an owner is the principal's own. Nothing that has no owner is anybody's.
func (p Principal) Owns(owner uuid.UUID) bool {
	return p.Account != (uuid.UUID{}) && p.Account == owner
}

// An Account is a wallet that signed in once.
type Account struct {
	ID         uuid.UUID
	Wallet     common.Address
	Plan       string // by name; empty: the first of the table
	CreatedAt  time.Time
	LastSeenAt time.Time
	Admin      bool // the wallet has the role now
	Services   int  // that are its own and not retired
}

// An Owner is what the paid path knows of the account that a service belongs to.
type Owner struct {
	Wallet    common.Address
	Plan      string
	Addresses []netip.Addr // that the account was used from in AddressesKept
}

// AddressesKept is how long it is remembered from where an account was used.
const AddressesKept = 30 * 24 * time.Hour
