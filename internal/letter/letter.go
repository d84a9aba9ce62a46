package letter

import (
	"time"

	"github.com/google/uuid"
)

// A Kind is what a letter tells of. The empty string is none. They are a contract with whoever receives them.
type Kind string

const (
	StrikeOpened Kind = "strike.opened"
	StrikeVoided Kind = "strike.voided" // a review found that it was none
	StrikeUpheld Kind = "strike.upheld" // a review found that it stays

	// Of a service that has come into a state, whatever brought it there.
	ServiceDelisted  Kind = "service.delisted"
	ServiceHeld      Kind = "service.held"
	ServiceSuspended Kind = "service.suspended"
	ServiceRelisted  Kind = "service.relisted"

	ServiceUpheld Kind = "service.upheld" // a review answered an appeal, and leaves the service as it is

	// Of the account that owns the service.
	PayoutPaid    Kind = "payout.paid"    // a payout has arrived, and is final
	PayoutParked  Kind = "payout.parked"  // one does not get through for now
	PayoutAddress Kind = "payout.address" // it is to be paid to another address
)

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{StrikeOpened, StrikeVoided, StrikeUpheld, ServiceDelisted, ServiceHeld, ServiceSuspended, ServiceRelisted, ServiceUpheld, PayoutPaid, PayoutParked, PayoutAddress}
}

// A Channel is a way to a provider.
type Channel string

const (
	Email   Channel = "email"
	Webhook Channel = "webhook"
)

// Channels returns every channel.
func Channels() []Channel { return []Channel{Email, Webhook} }

// A Letter is what a provider is told.
type Letter struct {
	ID      uuid.UUID
	Service uuid.UUID
	Kind    Kind
	At      time.Time // given by the database
	Facts   Facts
}

// Facts are what a letter says. They are kept as JSON, and sent in it, so their members are a contract; what is known of a strike has the members that
// the API shows to a provider. Texts of the service and of its callers are in them, bounded, and without the secrets of the listing.
type Facts struct {
	Service string  `json:"service"` // slug
	Name    string  `json:"name"`
	State   string  `json:"state"`  // of the service, after what is told
	Reason  string  `json:"reason"` // why it happened, in words
	By      string  `json:"by"`     // who did it
	Strike  *Strike `json:"strike,omitempty"`
	// Strikes are how the service stands with those that count; nil where strikes have no part in what is told.
	Strikes *Standing `json:"strikes,omitempty"`
	Next    string    `json:"next"` // what happens at the next failure, in words
	Payout  *Payout   `json:"payout,omitempty"`
	PaidTo  *PaidTo   `json:"paid_to,omitempty"`
}

// A Payout is the one that a letter is about.
type Payout struct {
	ID          uuid.UUID `json:"id"`
	Number      int64     `json:"number"` // of the account on the network in the asset
	Network     string    `json:"network"`
	Asset       string    `json:"asset"`
	Amount      string    `json:"amount"` // base units
	Sum         string    `json:"sum"`    // for people
	To          string    `json:"to"`
	Transaction string    `json:"transaction,omitempty"`
}

// PaidTo is where an account is paid on a network.
type PaidTo struct {
	Network string `json:"network"`
	Now     string `json:"now"`
	Next    string `json:"next,omitempty"` // left out where no change waits
	NextAt  string `json:"next_at,omitempty"`
}

// A Strike is the one that a letter is about, or that decided.
type Strike struct {
	ID         uuid.UUID  `json:"id"`
	State      string     `json:"state"`
	OpenedAt   string     `json:"opened_at"`
	Deliveries int        `json:"deliveries"`
	Evidence   []Evidence `json:"evidence"` // the oldest and the newest
}

// A Standing is what the strikes of a service come to.
type Standing struct {
	Open   int     `json:"open"`           // that count at the next failure
	Limit  int     `json:"limit"`          // of them that take the service off the shelf
	Window float64 `json:"window_seconds"` // in which they count
	Needed int     `json:"sources_needed"` // networks; with fewer the service is held instead
	Words  string  `json:"words"`          // what they rest on
}

// Evidence is one delivery that proves a strike, as its provider may see it.
type Evidence struct {
	Call     uuid.UUID `json:"call"`
	Trial    bool      `json:"trial"`
	AskedAt  string    `json:"asked_at"`
	Recorded string    `json:"recorded_at"`
	Source   string    `json:"source"` // the network, not the address
	Origin   string    `json:"origin"`
	Payer    string    `json:"payer,omitempty"` // left out for a trial
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Status   int       `json:"service_status,omitempty"`
	Latency  float64   `json:"latency_ms"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail"`
	Error    string    `json:"error,omitempty"`
	Excused  bool      `json:"excused,omitempty"`
	Answer   *Said     `json:"answer,omitempty"` // left out where nothing came
	Others   *Others   `json:"others,omitempty"` // left out where it is not known
}

// Said is what came back. All of it was written by the service.
type Said struct {
	ContentType string `json:"content_type"`
	Snippet     string `json:"snippet"`
	Binary      bool   `json:"binary"`
	Bytes       int64  `json:"bytes"`
	Cut         bool   `json:"cut"`
	SHA256      string `json:"sha256"`
}

// Others is how other services fared in the minute before.
type Others struct {
	Asked  int `json:"asked"`
	Failed int `json:"failed"`
}
