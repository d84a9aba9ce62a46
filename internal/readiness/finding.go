package readiness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Capability is one thing that the accounts behind us permit on a network, or do not.
type Capability uint8

// Capabilities.
const (
	_ Capability = iota
	// Settle is that a caller's payment can be settled.
	Settle
	// Refund is that it can be given back.
	Refund
)

// String is the capability's name.
func (c Capability) String() string {
	switch c {
	case Settle:
		return "settle"
	case Refund:
		return "refund"
	}
	return fmt.Sprintf("capability %d", uint8(c))
}

// A Finding is what one look at a network found. nil proves the capability; an error that is Denied (errors.As) is a definite no; any other error, such as a
// timeout or a 5xx, says nothing.
type Finding struct {
	Settle, Refund error
	// ValidFor is how long the authority itself lets its answer be used; zero: it says nothing. It can only shorten what we would use it for.
	ValidFor time.Duration
}

// Err returns why not both capabilities are proved.
func (f Finding) Err() error {
	if f.Settle != nil {
		return f.Settle
	}
	return f.Refund
}

// Denied is a definite no of the authority: it replaces a good result at once.
type Denied struct{ Why error }

// Error says why.
func (d *Denied) Error() string { return d.Why.Error() }

// Unwrap returns why.
func (d *Denied) Unwrap() error { return d.Why }

// Deny makes a definite no.
func Deny(format string, args ...any) error { return &Denied{Why: fmt.Errorf(format, args...)} }

func denied(err error) bool {
	_, no := errors.AsType[*Denied](err)
	return no
}

// A Check looks at one network, and ends when ctx does.
type Check func(ctx context.Context) Finding
