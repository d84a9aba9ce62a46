package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// Who granted an admin the role last.
const (
	sourceConfig = "config"
	sourceAdmin  = "admin"
	// byConfig is the name under which the configuration grants and revokes.
	byConfig = "MARKET_ADMIN_WALLETS"
)

// An Admin is a wallet that has the role, or had it.
type Admin struct {
	Wallet    common.Address
	Source    string // config or admin
	GrantedBy string
	GrantedAt time.Time
	RevokedBy string    // empty: nobody
	RevokedAt time.Time // zero: it has the role
}

// Nothing changes for a wallet that has the role.
const grantSQL = `
INSERT INTO admins (wallet, source, granted_by) VALUES ($1, $2, $3)
ON CONFLICT (wallet) DO UPDATE
   SET source = excluded.source, granted_by = excluded.granted_by, granted_at = market_now(), revoked_by = NULL, revoked_at = NULL
 WHERE admins.revoked_at IS NOT NULL`

// Grant makes a wallet an admin, and says whether it was none.
func (Store) Grant(ctx context.Context, db postgres.DB, wallet common.Address, by string) (bool, error) {
	tag, err := db.Exec(ctx, grantSQL, wallet[:], sourceAdmin, by)
	if err != nil {
		return false, fmt.Errorf("make %s an admin: %w", wallet, err)
	}
	return tag.RowsAffected() == 1, nil
}

const revokeSQL = `
UPDATE admins SET revoked_by = $2, revoked_at = market_now() WHERE wallet = $1 AND revoked_at IS NULL`

// Revoke takes the role from a wallet, and says whether it had it. The next request of its sessions is that of no admin.
func (Store) Revoke(ctx context.Context, db postgres.DB, wallet common.Address, by string) (bool, error) {
	tag, err := db.Exec(ctx, revokeSQL, wallet[:], by)
	if err != nil {
		return false, fmt.Errorf("make %s no admin: %w", wallet, err)
	}
	return tag.RowsAffected() == 1, nil
}

// adminsMax is how many are listed.
const adminsMax = 200

const adminsSQL = `
SELECT wallet, source, granted_by, granted_at, coalesce(revoked_by, ''), revoked_at FROM admins
 ORDER BY revoked_at IS NOT NULL, granted_at DESC, wallet LIMIT $1`

func scanAdmin(row pgx.CollectableRow) (a Admin, err error) {
	var revoked *time.Time
	err = row.Scan(walletOf(&a.Wallet), &a.Source, &a.GrantedBy, &a.GrantedAt, &a.RevokedBy, &revoked)
	a.RevokedAt = orZero(revoked)
	return a, err
}

// Admins returns who has the role, and then who had it, the latest first.
func (Store) Admins(ctx context.Context, db postgres.DB) ([]Admin, error) {
	rows, err := db.Query(ctx, adminsSQL, adminsMax)
	if err != nil {
		return nil, fmt.Errorf("list admins: %w", err)
	}
	admins, err := pgx.CollectRows(rows, scanAdmin)
	if err != nil {
		return nil, fmt.Errorf("list admins: %w", err)
	}
	return admins, nil
}

// Applied is what a list of the configuration did.
type Applied struct {
	Granted, Revoked []common.Address
	Withheld         []common.Address // listed, and demoted by an admin: they stay so
}

const configGrantSQL = `
INSERT INTO admins (wallet, source, granted_by) SELECT unnest($1::bytea[]), $2, $3
ON CONFLICT (wallet) DO UPDATE
   SET source = excluded.source, granted_by = excluded.granted_by, granted_at = market_now(), revoked_by = NULL, revoked_at = NULL
 WHERE admins.revoked_by = $3
RETURNING wallet`

const configRevokeSQL = `
UPDATE admins SET revoked_by = $3, revoked_at = market_now()
 WHERE source = $2 AND revoked_at IS NULL AND wallet <> ALL ($1::bytea[])
RETURNING wallet`

const withheldSQL = `
SELECT wallet FROM admins WHERE wallet = ANY ($1::bytea[]) AND revoked_at IS NOT NULL AND revoked_by <> $2 ORDER BY wallet LIMIT 1000`

// Apply makes the wallets of the configuration admins: those that were none yet, and those that only the configuration had taken the role from. Who has
// the role by the configuration and is not listed any more loses it. What admins decided stands.
func (Store) Apply(ctx context.Context, tx pgx.Tx, listed []common.Address) (a Applied, err error) {
	wallets := make([][]byte, 0, len(listed))
	for _, w := range listed {
		wallets = append(wallets, w[:])
	}
	for _, step := range []struct {
		into *[]common.Address
		sql  string
		args []any
	}{
		{&a.Granted, configGrantSQL, []any{wallets, sourceConfig, byConfig}},
		{&a.Revoked, configRevokeSQL, []any{wallets, sourceConfig, byConfig}},
		{&a.Withheld, withheldSQL, []any{wallets, byConfig}},
	} {
		rows, err := tx.Query(ctx, step.sql, step.args...)
		if err != nil {
			return Applied{}, fmt.Errorf("apply the admins of the configuration: %w", err)
		}
		*step.into, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (w common.Address, err error) {
			err = row.Scan(walletOf(&w))
			return w, err
		})
		if err != nil {
			return Applied{}, fmt.Errorf("apply the admins of the configuration: %w", err)
		}
	}
	return a, nil
}
