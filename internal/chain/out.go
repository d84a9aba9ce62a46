package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An unfitError is why an endpoint did not answer, so that another one should.
type unfitError struct {
	place int // of the endpoint
	err   error
	held  bool // by its gate
}

func (e *unfitError) Error() string { return fmt.Sprintf("RPC endpoint %d: %s", e.place, e.err) }

func (e *unfitError) Unwrap() error { return e.err }

// An outError says of every endpoint that was asked why it did not answer.
type outError struct {
	text string
	errs []error // that may be found in it
}

func (e *outError) Error() string { return e.text }

func (e *outError) Unwrap() []error { return e.errs }

// out makes one error of why no endpoint answered. Where the gates of all of them said no, the no that ends first is found first in it. Where one of them
// is only not reached, it may be there again before any gate opens, so no gate's no is found.
func (n *Node) out(unfit []*unfitError) error {
	if len(n.endpoints) == 1 {
		return unfit[0].err // as one endpoint was always spoken of
	}
	var held, others []error
	texts := make([]string, len(unfit))
	for i, u := range unfit {
		texts[i] = u.Error()
		if u.held {
			held = append(held, u.err)
		} else {
			others = append(others, u.err)
		}
	}
	text := strings.Join(texts, "; ")
	if len(held) < len(n.endpoints) {
		return &outError{text, others}
	}
	slices.SortStableFunc(held, endsFirst)
	return &outError{text, held}
}

// endsFirst sorts by when a gate opens; those of which that is not known come last.
func endsFirst(a, b error) int {
	first, timed := errors.AsType[*HeldError](a)
	second, also := errors.AsType[*HeldError](b)
	switch {
	case timed && also && first.Until.IsZero() == second.Until.IsZero():
		return first.Until.Compare(second.Until)
	case timed && !first.Until.IsZero():
		return -1
	case also && !second.Until.IsZero():
		return 1
	}
	return 0
}
