package identity

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// Channel is that of the notifications that the schema's triggers send when what the Board holds has changed.
const Channel = "accounts"

// Board holds the accounts that own services, and the keys of our scanners, in memory, so that the paid path asks the database nothing about them. It may
// be late by a notification.
type Board struct {
	owners   atomic.Pointer[map[uuid.UUID]Owner]
	scanners atomic.Pointer[scanners]
}

// NewBoard returns an empty board.
func NewBoard() *Board {
	b := &Board{}
	b.owners.Store(&map[uuid.UUID]Owner{})
	b.scanners.Store(&scanners{})
	return b
}

// Who has nothing but retired services is not asked about: calls of those that are still under way have begun.
const ownersSQL = `
SELECT a.id, a.wallet, a.plan, array(
	SELECT host(address) FROM account_addresses WHERE account_id = a.id AND seen_at > market_now() - $1::interval ORDER BY seen_at DESC LIMIT $2)
  FROM accounts a
 WHERE EXISTS (SELECT 1 FROM services WHERE owner_id = a.id AND state <> 'retired')
 LIMIT 100000`

// Load reads the owners, and the keys of scanners.
func (b *Board) Load(ctx context.Context, db postgres.DB) error {
	rows, err := db.Query(ctx, ownersSQL, AddressesKept, addressesMax)
	if err != nil {
		return fmt.Errorf("load owners: %w", err)
	}
	next := map[uuid.UUID]Owner{}
	var (
		id        uuid.UUID
		owner     Owner
		addresses []string
	)
	_, err = pgx.ForEachRow(rows, []any{&id, walletOf(&owner.Wallet), &owner.Plan, &addresses}, func() error {
		owner.Addresses = nil
		for _, text := range addresses {
			if at, err := netip.ParseAddr(text); err == nil {
				owner.Addresses = append(owner.Addresses, at)
			}
		}
		next[id] = owner
		return nil
	})
	if err != nil {
		return fmt.Errorf("load owners: %w", err)
	}
	keys, err := readScanners(ctx, db)
	if err != nil {
		return err
	}
	b.owners.Store(&next)
	b.scanners.Store(&keys)
	return nil
}

// Owner returns what is known of an account that owns services; false for the zero id, which is the operator's, and for any other. What is returned is
// shared and must not be changed.
func (b *Board) Owner(account uuid.UUID) (Owner, bool) {
	if account == (uuid.UUID{}) {
		return Owner{}, false
	}
	owner, ok := (*b.owners.Load())[account]
	return owner, ok
}
