package identity

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// Of two who take the role from two admins at once, the second waits for the first and then finds who is left: a row that has lost the role meanwhile is
// left out. So the last of them is seen to be the last.
const holdAdminsSQL = `
SELECT wallet FROM admins WHERE revoked_at IS NULL ORDER BY wallet FOR UPDATE`

// HoldAdmins returns who has the role, and keeps everybody else from taking it from any of them until the transaction ends.
func (Store) HoldAdmins(ctx context.Context, tx pgx.Tx) ([]common.Address, error) {
	rows, err := tx.Query(ctx, holdAdminsSQL)
	if err != nil {
		return nil, fmt.Errorf("hold the admins: %w", err)
	}
	wallets, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w common.Address, err error) {
		err = row.Scan(walletOf(&w))
		return w, err
	})
	if err != nil {
		return nil, fmt.Errorf("hold the admins: %w", err)
	}
	return wallets, nil
}

const adminSQL = `
SELECT wallet, source, granted_by, granted_at, coalesce(revoked_by, ''), revoked_at FROM admins WHERE wallet = $1`

// Admin returns what is known of the role of a wallet; the zero value with its wallet where it never had it.
func (Store) Admin(ctx context.Context, db postgres.DB, wallet common.Address) (Admin, error) {
	rows, err := db.Query(ctx, adminSQL, wallet[:])
	if err != nil {
		return Admin{}, fmt.Errorf("read the role of %s: %w", wallet, err)
	}
	all, err := pgx.CollectRows(rows, scanAdmin)
	if err != nil {
		return Admin{}, fmt.Errorf("read the role of %s: %w", wallet, err)
	}
	if len(all) == 0 {
		return Admin{Wallet: wallet}, nil
	}
	return all[0], nil
}
