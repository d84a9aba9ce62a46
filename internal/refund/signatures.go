package refund

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/postgres"
)

// A signature that was, or may have been, shown.
type signature struct {
	validBefore uint64
	bytes       chain.Signature
}

const signaturesSQL = `
SELECT valid_before, signature FROM refund_signatures WHERE call_id = $1 ORDER BY valid_before DESC LIMIT 100`

// signatures returns what was signed for a refund, the longest valid first.
func (Store) signatures(ctx context.Context, db postgres.DB, id call.ID) ([]signature, error) {
	rows, err := db.Query(ctx, signaturesSQL, id)
	if err != nil {
		return nil, fmt.Errorf("read signatures of refund %s: %w", id, err)
	}
	signed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (signature, error) {
		var (
			validBefore int64
			raw         []byte
		)
		if err := row.Scan(&validBefore, &raw); err != nil {
			return signature{}, err
		}
		parsed, err := chain.ParseSignature(raw)
		return signature{uint64(validBefore), parsed}, err //nolint:gosec // written from a uint64 below 2^63
	})
	if err != nil {
		return nil, fmt.Errorf("read signatures of refund %s: %w", id, err)
	}
	return signed, nil
}

const addSignatureSQL = `
INSERT INTO refund_signatures (call_id, valid_before, signature) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

const markSentSQL = `UPDATE refunds SET state = 'sent' WHERE call_id = $1 AND state IN ('owed', 'sent', 'parked')`

// addSignature writes the intent before the act: from here on the authorization counts as shown.
func (Store) addSignature(ctx context.Context, db postgres.DB, id call.ID, s signature) error {
	if _, err := db.Exec(ctx, addSignatureSQL, id, int64(s.validBefore), s.bytes.Bytes()); err != nil { //nolint:gosec // seconds
		return fmt.Errorf("write signature of refund %s: %w", id, err)
	}
	if _, err := db.Exec(ctx, markSentSQL, id); err != nil {
		return fmt.Errorf("mark refund %s sent: %w", id, err)
	}
	return nil
}
