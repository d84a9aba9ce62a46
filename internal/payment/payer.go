package payment

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/postgres"
)

// undoneWindow is how long the chain's undoing a payment is held against its payer.
const undoneWindow = 24 * time.Hour

// A Payer is what is known of who pays.
type Payer struct {
	// Known says that a payment settled here within 7 days. Who has none is a stranger, whose means are checked before a claim.
	Known bool
	// Undone counts the payments of a day that went through when they were simulated, cost us a transaction, and were undone by the chain because
	// the payer's own code would not have them then. A key without code can not do that.
	Undone int
}

const payerSQL = `
SELECT EXISTS (SELECT 1 FROM calls WHERE payer = $1 AND created_at > market_now() - interval '7 days' AND transaction IS NOT NULL),
       (SELECT count(*) FROM calls
	 WHERE payer = $1 AND created_at > market_now() - $2::interval AND state IN ('rejected', 'refused')
	   AND transaction IS NULL AND sent_transaction IS NOT NULL AND why = ANY($3))`

// Payer looks a payer up.
func (Store) Payer(ctx context.Context, db postgres.DB, address common.Address) (Payer, error) {
	var p Payer
	own := []string{string(CodeFailed), string(CodeSignature)}
	if err := db.QueryRow(ctx, payerSQL, address[:], undoneWindow, own).Scan(&p.Known, &p.Undone); err != nil {
		return Payer{}, fmt.Errorf("look up payer %s: %w", address, err)
	}
	return p, nil
}
