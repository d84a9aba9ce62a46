package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres"
	"market/internal/refund"
)

// An openCall is a call as the database has it: what a retry or the sweeper needs to go on with it.
type openCall struct {
	ID           call.ID
	State        call.State
	PaymentState string // of the payment's own life; empty until it is proved, or believed
	Late         bool
	Free         bool          // its lease has run out: nobody walks it
	Since        time.Duration // it is in its state
	Review       bool          // a person decides on it
	Network      string
	Signed       chain.Signed
	Service      uuid.UUID
	Endpoint     uuid.UUID
	Origin       call.Origin
	Method       string
	Path         string
	Source       netip.Addr
	Proof        chain.Proof // zero until the payment is proved
	ClaimedBlock uint64
	AskedAt      time.Time
	Word         string        // whose word it is that the payment was settled, as long as there is no proof; empty: nobody's
	WordAge      time.Duration // since it was given
	UsedFor      time.Duration // since the payment's nonce was first seen used without a log of it, in a payment that was believed
	Sent         common.Hash   // the transaction that carries the authorization, as far as one was named
}

// openColumns are what scanOpen reads, in its order.
const openColumns = `
c.id, c.state, coalesce(c.payment_state, ''), c.late, c.lease_until <= market_now(), market_now() - c.state_since, c.review, c.network, c.asset, c.payer, c.treasury, c.amount, c.valid_after, c.valid_before,
c.nonce, c.signature, c.service_id, c.endpoint_id, c.origin, c.method, c.path, c.source, c.transaction, coalesce(c.log_index, 0),
coalesce(c.block_number, 0), c.block_hash, c.claimed_block, c.asked_at, CASE WHEN c.transaction IS NULL THEN coalesce(c.word_of, '') ELSE '' END,
coalesce(market_now() - c.word_at, '0'), coalesce(market_now() - c.used_since, '0'), c.sent_transaction`

func scanOpen(row pgx.CollectableRow) (openCall, error) {
	var (
		c                                                                      openCall
		asset, payer, treasury, nonce, signature, transaction, blockHash, sent []byte
		amount                                                                 money.Amount
		after, before, logIndex, block, claimed                                int64
		asked                                                                  *time.Time
	)
	err := row.Scan(&c.ID, &c.State, &c.PaymentState, &c.Late, &c.Free, &c.Since, &c.Review, &c.Network, &asset, &payer, &treasury, &amount, &after, &before,
		&nonce, &signature, &c.Service, &c.Endpoint, &c.Origin, &c.Method, &c.Path, &c.Source, &transaction, &logIndex, &block, &blockHash,
		&claimed, &asked, &c.Word, &c.WordAge, &c.UsedFor, &sent)
	if err != nil {
		return openCall{}, err
	}
	parsed, err := chain.ParseSignature(signature)
	if err != nil {
		return openCall{}, fmt.Errorf("signature of call %s: %w", c.ID, err)
	}
	c.Signed = chain.Signed{Asset: common.BytesToAddress(asset), Signature: parsed, Authorization: chain.Authorization{
		From: common.BytesToAddress(payer), To: common.BytesToAddress(treasury), Value: amount,
		ValidAfter: uint64(after), ValidBefore: uint64(before), Nonce: common.BytesToHash(nonce), //nolint:gosec // written from values that fit
	}}
	c.Proof = chain.Proof{Transaction: common.BytesToHash(transaction), LogIndex: uint(logIndex), //nolint:gosec // as above
		BlockNumber: uint64(block), BlockHash: common.BytesToHash(blockHash)} //nolint:gosec // as above
	c.ClaimedBlock = uint64(claimed) //nolint:gosec // as above
	c.Sent = common.BytesToHash(sent)
	if asked != nil {
		c.AskedAt = *asked
	}
	return c, nil
}

// refundOf is what the caller gets back of this call.
func (c openCall) refundOf(chainID uint64) *refund.Owed {
	owed := refund.Derive(refund.Payment{
		Call: c.ID, Network: c.Network, ChainID: chainID, Asset: c.Signed.Asset, Payer: c.Signed.From, Nonce: c.Signed.Nonce,
		Amount: c.Signed.Value, Treasury: c.Signed.To, Transaction: c.Proof.Transaction,
	})
	return &owed
}

// delivery starts the delivery of a call that nobody is walking.
func (c openCall) delivery() Delivery {
	return Delivery{
		ID: uuid.Must(uuid.NewV7()), Call: c.ID, Service: c.Service, Endpoint: c.Endpoint, Origin: c.Origin, Method: c.Method, Path: c.Path,
		Source: c.Source, Payer: c.Signed.From, AskedAt: c.AskedAt,
	}
}

// A call may be taken over by a retry of its payment once its lease has run out: while its settlement is unclear, to send again, and once
// it is proved, to be served after all. It is one statement on one row, so of two retries, or of a retry and the sweeper, one wins. An
// asked call is never taken over: the service may have done the work. A payment that the chain has dropped is not served before it is back.
const takeOverSQL = `
UPDATE calls c
   SET owner = $2, lease_until = market_now() + $3::interval
 WHERE c.id = $1 AND c.state IN ('settling', 'unknown', 'settled') AND NOT c.late AND NOT c.review AND c.lease_until <= market_now()
   AND coalesce(c.payment_state, 'mined') IN ('mined', 'final')
RETURNING ` + openColumns

// takeOver makes a call ours; false where somebody else has it, or it has moved on.
func takeOver(ctx context.Context, db postgres.DB, id call.ID, owner uuid.UUID, lease time.Duration) (openCall, bool, error) {
	rows, err := db.Query(ctx, takeOverSQL, id, owner, lease)
	if err != nil {
		return openCall{}, false, fmt.Errorf("take over call %s: %w", id, err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanOpen)
	if errors.Is(err, pgx.ErrNoRows) {
		return openCall{}, false, nil
	}
	if err != nil {
		return openCall{}, false, fmt.Errorf("take over call %s: %w", id, err)
	}
	return c, true, nil
}

// A settled call that a retry took over is asked, or found to be resting, on one snapshot, as at its settlement.
const resumeSQL = `
WITH ` + standingSQL + `
UPDATE calls
   SET state = CASE WHEN service.listed AND NOT service.cooling THEN 'asked' ELSE 'settled' END,
       asked_at = CASE WHEN service.listed AND NOT service.cooling THEN service.now END,
       state_since = service.now, lease_until = service.now + $4::interval
  FROM service
 WHERE calls.id = $1 AND calls.owner = $2 AND calls.state = 'settled' AND calls.payment_state IN ('mined', 'final')
RETURNING service.listed, service.cooling, service.rest, service.now`

// resume lets a settled call that was taken over be asked.
func resume(ctx context.Context, db postgres.DB, id call.ID, owner, service uuid.UUID, lease time.Duration) (standing, error) {
	var s standing
	err := db.QueryRow(ctx, resumeSQL, id, owner, service, lease).Scan(&s.listed, &s.cooling, &s.rest, &s.askedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return standing{}, payment.ErrMoved
	}
	if err != nil {
		return standing{}, fmt.Errorf("resume call %s: %w", id, err)
	}
	return s, nil
}
