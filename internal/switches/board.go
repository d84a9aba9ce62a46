package switches

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"market/internal/postgres"
)

// ErrStopped is that the operator takes no new payments on a network. Its words are for anybody: why the operator does so is not in them.
var ErrStopped = errors.New("the operator has stopped new payments")

// Board holds what is on in memory, so that a request costs no query. It may be late by a notification.
type Board struct {
	on atomic.Pointer[map[Name]Switch]
}

// NewBoard returns a board on which nothing is on.
func NewBoard() *Board {
	b := &Board{}
	b.on.Store(&map[Name]Switch{})
	return b
}

// Load reads what is on. After an error the board stays as it was.
func (b *Board) Load(ctx context.Context, db postgres.DB) error {
	all, err := Store{}.All(ctx, db)
	if err != nil {
		return err
	}
	on := map[Name]Switch{}
	for _, s := range all {
		if s.On {
			on[s.Name] = s
		}
	}
	b.on.Store(&on)
	return nil
}

// On returns the switches that are on, in no order.
func (b *Board) On() []Switch {
	var on []Switch
	for _, s := range *b.on.Load() {
		on = append(on, s)
	}
	return on
}

// Stopped returns ErrStopped where the operator takes no new payments on a network, and nil where they are taken.
func (b *Board) Stopped(network string) error {
	if _, on := (*b.on.Load())[Name{Stop402, network}]; on {
		return fmt.Errorf("%w on %s", ErrStopped, network)
	}
	return nil
}
