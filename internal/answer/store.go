package answer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
)

var (
	// ErrNone is a call of which no answer is kept: it had none, or the answer's time is long over.
	ErrNone = errors.New("no answer kept")
	// ErrExpired is an answer whose time is over.
	ErrExpired = errors.New("answer expired")
)

// Kept is an answer as its row has it, still sealed.
type Kept struct {
	Call       call.ID
	Status     int
	Sealed     []byte
	Identifier string // that the payment was sent with, empty for none
	Source     netip.Addr
	Age        time.Duration // since it was recorded
}

// Facts are what Prove compares; the payer is the call's.
func (k Kept) Facts(payer common.Address) Facts {
	return Facts{Payer: payer, Identifier: k.Identifier, Source: k.Source, Age: k.Age}
}

// What has expired does not leave the database, even if it was not deleted yet.
const findSQL = `
SELECT status, CASE WHEN expires_at > market_now() THEN sealed END, coalesce(identifier, ''), source, market_now() - stored_at
  FROM answers WHERE call_id = $1`

// Find returns the kept answer of a call, or ErrNone or ErrExpired.
func (Store) Find(ctx context.Context, db postgres.DB, id call.ID) (Kept, error) {
	k := Kept{Call: id}
	err := db.QueryRow(ctx, findSQL, id).Scan(&k.Status, &k.Sealed, &k.Identifier, &k.Source, &k.Age)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Kept{}, ErrNone
	case err != nil:
		return Kept{}, fmt.Errorf("find answer of call %s: %w", id, err)
	case k.Sealed == nil:
		return Kept{}, ErrExpired
	}
	return k, nil
}

const deleteExpiredSQL = `
DELETE FROM answers WHERE call_id IN
	(SELECT call_id FROM answers WHERE expires_at <= market_now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)`

// DeleteExpired removes up to limit answers whose time is over and returns how many; fewer than limit means that none is left.
func (Store) DeleteExpired(ctx context.Context, db postgres.DB, limit int) (int, error) {
	tag, err := db.Exec(ctx, deleteExpiredSQL, limit)
	if err != nil {
		return 0, fmt.Errorf("delete expired answers: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
