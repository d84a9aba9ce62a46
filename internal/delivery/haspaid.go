package delivery

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/postgres"
)

const hasPaidSQL = `SELECT EXISTS (SELECT FROM calls WHERE payer = $1)`

// HasPaid says whether somebody has paid for a call from an account.
func HasPaid(ctx context.Context, db postgres.DB, account common.Address) (paid bool, err error) {
	if err := db.QueryRow(ctx, hasPaidSQL, account[:]).Scan(&paid); err != nil {
		return false, fmt.Errorf("look for calls that %s has paid for: %w", account, err)
	}
	return paid, nil
}
