package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// Channel is that of the notifications that the schema's triggers send when a difference is named, closes its network or ends.
const Channel = "differences"

// ErrDifferent is that what the chain says of a treasury and what we say have been different for too long. Its words are for anybody.
var ErrDifferent = errors.New("the market's books are being checked")

// Board holds in memory on which networks nobody new is asked to pay, so that a request costs no query. It may be late by a notification.
type Board struct {
	closed atomic.Pointer[map[string]bool]
}

// NewBoard returns a board on which nothing is closed.
func NewBoard() *Board {
	b := &Board{}
	b.closed.Store(&map[string]bool{})
	return b
}

const closedSQL = `SELECT DISTINCT network FROM differences WHERE ended_at IS NULL AND closed_at IS NOT NULL`

// Load reads what is closed. After an error the board stays as it was.
func (b *Board) Load(ctx context.Context, db postgres.DB) error {
	rows, err := db.Query(ctx, closedSQL)
	if err != nil {
		return fmt.Errorf("read where differences close the gate: %w", err)
	}
	networks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read where differences close the gate: %w", err)
	}
	closed := map[string]bool{}
	for _, n := range networks {
		closed[n] = true
	}
	b.closed.Store(&closed)
	return nil
}

// Stopped returns ErrDifferent where a difference closes a network, and nil elsewhere.
func (b *Board) Stopped(network string) error {
	if (*b.closed.Load())[network] {
		return fmt.Errorf("%w on %s", ErrDifferent, network)
	}
	return nil
}
