package delivery

import (
	"context"
	"fmt"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
)

// After a backup was restored, the calls since it was made are not known any more, and their payments are still proved on the chain:
// presented again they would be delivered again. They are those whose transfer is older than the restore and stood before we claimed it.

const whyReview = "this payment was made before we restored a backup; what became of it then is being looked up"

// needsReview says whether what was done for a payment may have been forgotten. Only a transfer that stood at its claim costs a read.
func (p *Path) needsReview(ctx context.Context, rail Rail, proof chain.Proof, claimedBlock uint64) (bool, error) {
	if p.RestoredAt.IsZero() || proof.BlockNumber > claimedBlock {
		return false, nil
	}
	at, err := rail.Chain.BlockTime(ctx, proof.BlockNumber)
	if err != nil {
		return false, fmt.Errorf("read the time of block %d: %w", proof.BlockNumber, err)
	}
	return at <= uint64(max(0, p.RestoredAt.Unix())), nil //nolint:gosec // not negative
}

// holdForReview takes a settled call out of the walk where it needs a review; nil: it goes on.
func (p *Path) holdForReview(ctx context.Context, h held, s chain.Settlement) *Answer {
	review, err := p.needsReview(ctx, h.rail, s.Proof, h.block)
	if err != nil {
		return p.pending(h, s, err) // the sweeper finds the transfer and asks again
	}
	if !review {
		return nil
	}
	if err := p.review(ctx, h, s.Proof); err != nil {
		return p.pending(h, s, err)
	}
	return &Answer{Call: h.id, Reason: call.NeedsReview, Charged: ChargedPending, Detail: whyReview, Receipt: receipt(h, true, s, ""),
		Payment: &Payment{Network: h.rail.Network.ID, Asset: h.signed.Asset, Payer: h.signed.From, Amount: h.signed.Value,
			Transaction: s.Proof.Transaction, Proved: true}}
}

// A call that was open in the backup went on after it was made: what became of it then is not in the books either.
const reviewOpenSQL = `
UPDATE calls SET review = true
 WHERE NOT review AND created_at <= $1 AND state IN ('settling', 'unknown', 'settled', 'asked')`

// ReviewOpen puts up for review what was open when a backup that was restored was made. It comes before the first request and the first
// sweep, and does nothing where none was restored.
func (p *Path) ReviewOpen(ctx context.Context) error {
	if p.RestoredAt.IsZero() {
		return nil
	}
	if _, err := p.DB.Exec(ctx, reviewOpenSQL, p.RestoredAt); err != nil {
		return fmt.Errorf("put calls up for review: %w", err)
	}
	return nil
}

const reviewSQL = `
UPDATE calls
   SET state = 'settled', review = true, transaction = $3, log_index = $4, block_number = $5, block_hash = $6, payment_state = 'mined',
       state_since = market_now(), lease_until = market_now(), look_at = market_now(), looks = 0
 WHERE id = $1 AND owner = $2 AND state IN ('settling', 'unknown')`

func (p *Path) review(ctx context.Context, h held, proof chain.Proof) error {
	tag, err := p.DB.Exec(ctx, reviewSQL, h.id, p.owner, proof.Transaction[:], int64(proof.LogIndex), int64(proof.BlockNumber), //nolint:gosec // range-checked by chain
		proof.BlockHash[:])
	if err != nil {
		return fmt.Errorf("put call %s up for review: %w", h.id, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("put call %s up for review: %w", h.id, payment.ErrMoved)
	}
	return nil
}
