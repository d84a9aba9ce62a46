package delivery

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
)

// foundMax bounds what is found by one hash: many payments may be settled in one transaction.
const foundMax = 20

const findCallsSQL = `
SELECT id FROM (
	SELECT id FROM calls WHERE network = ANY($1) AND transaction = $2
	UNION
	SELECT id FROM calls WHERE network = ANY($1) AND transaction IS NULL AND sent_transaction = $2
	UNION
	SELECT id FROM calls WHERE nonce = $2
	UNION
	SELECT call_id FROM refunds WHERE network = ANY($1) AND transaction = $2
) AS found
 ORDER BY id
 LIMIT $3`

// Find returns the calls whose payment or refund has this transaction, or whose payment has this nonce, the oldest first.
func Find(ctx context.Context, db postgres.DB, networks []string, hash common.Hash) ([]Record, error) {
	rows, err := db.Query(ctx, findCallsSQL, networks, hash[:], foundMax)
	if err != nil {
		return nil, fmt.Errorf("find calls by %s: %w", hash, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[call.ID])
	if err != nil {
		return nil, fmt.Errorf("find calls by %s: %w", hash, err)
	}
	return lookupAll(ctx, db, ids)
}
