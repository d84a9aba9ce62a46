package payment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/postgres"
)

// An Identity is what makes a payment this payment and no other: whoever shows the same one shows the same money.
type Identity struct {
	Network string // CAIP-2
	Asset   common.Address
	Payer   common.Address
	Nonce   common.Hash
}

// A Fingerprint is the SHA-256 of the request that a payment was first sent with.
type Fingerprint [32]byte

// A Claim takes a payment for one call, before its authorization is shown to anybody.
type Claim struct {
	ID            call.ID
	Network       string
	Signed        chain.Signed
	Service       uuid.UUID
	Endpoint      uuid.UUID
	PriceRevision int64
	FeeBPS        int
	Fingerprint   Fingerprint
	Method        string
	Path          string // escaped, without the query, which may hold what is not ours to keep
	Source        netip.Addr
	Origin        call.Origin
	Identifier    string        // the caller's own name for the payment; empty for none
	Owner         uuid.UUID     // the process that walks the call
	Lease         time.Duration // for which nobody else touches it
	Block         uint64        // the head that the payment was admitted at
}

// Identity returns the identity of the claimed payment.
func (c Claim) Identity() Identity {
	return Identity{Network: c.Network, Asset: c.Signed.Asset, Payer: c.Signed.From, Nonce: c.Signed.Nonce}
}

// A Call is what is known of a claimed payment.
type Call struct {
	ID          call.ID
	State       call.State
	Fingerprint Fingerprint
	LeaseLeft   time.Duration // zero or less: it has run out
	Late        bool          // refused before its money was found
	Identifier  string        // that the payment was sent with; empty for none
	Source      netip.Addr    // that it was sent from
	Age         time.Duration // since it was claimed
	Signed      chain.Signed  // the authorization that was claimed
}

// Same says whether an authorization is the one that was claimed, however it was signed. A payer can sign two with one nonce, of which the
// asset takes one.
func (c Call) Same(s chain.Signed) bool {
	a, b := c.Signed.Authorization, s.Authorization
	return c.Signed.Asset == s.Asset && a.From == b.From && a.To == b.To && a.Value.Cmp(b.Value) == 0 &&
		a.ValidAfter == b.ValidAfter && a.ValidBefore == b.ValidBefore && a.Nonce == b.Nonce
}

// Shown says whether an authorization is the one that was claimed, to the byte of its signature. Whoever shows it had the payer's word for it when
// it was claimed, also where that word can not be checked any more.
func (c Call) Shown(s chain.Signed) bool { return c.Same(s) && c.Signed.Signature == s.Signature }

// ErrUnclaimed is that a payment was never claimed here.
var ErrUnclaimed = errors.New("payment not claimed")

// ErrMoved is that a call was not in the state that a write expected: somebody else moved it.
var ErrMoved = errors.New("call moved meanwhile")

// ErrIdentifierTaken is that the payer gave another payment the same name.
var ErrIdentifierTaken = errors.New("payment-identifier names another payment")

// Store keeps claims and the states of their calls. Every method takes the caller's db.
type Store struct{}

// The unique identity decides between replicas: whoever inserts the row, or takes a released one back, goes on; everybody else gets no
// row. A released payment never left us, so the same request may use it again, under the id that it has. Its terms are then those of the
// authorization that comes now: a payer may sign two with one nonce, and the price may have changed between them. Whose share it is, the database
// pins in the row that is inserted.
const claimSQL = `
INSERT INTO calls (id, network, asset, payer, nonce, amount, treasury, valid_after, valid_before, signature, service_id, endpoint_id,
	price_revision, fee_bps, fingerprint, method, path, source, origin, state, owner, lease_until, claimed_block, payment_identifier)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, 'settling', $20, market_now() + $21::interval, $22, nullif($23, ''))
ON CONFLICT ON CONSTRAINT calls_payment_unique DO UPDATE
   SET state = 'settling', state_since = market_now(), owner = excluded.owner, lease_until = excluded.lease_until,
       amount = excluded.amount, treasury = excluded.treasury, valid_after = excluded.valid_after, valid_before = excluded.valid_before,
       signature = excluded.signature, price_revision = excluded.price_revision, fee_bps = excluded.fee_bps,
       source = excluded.source, origin = excluded.origin, claimed_block = excluded.claimed_block,
       payment_identifier = excluded.payment_identifier, provider_id = excluded.provider_id, why = '', look_at = market_now(), looks = 0
 WHERE calls.state = 'released' AND calls.fingerprint = excluded.fingerprint
RETURNING id`

// Claim writes that a payment belongs to this call and returns the call's id. claimed is false where it belongs to one already; Find
// tells which.
func (Store) Claim(ctx context.Context, db postgres.DB, c Claim) (id call.ID, claimed bool, err error) {
	s := c.Signed
	err = db.QueryRow(ctx, claimSQL, c.ID, c.Network, s.Asset[:], s.From[:], s.Nonce[:], s.Value, s.To[:],
		int64(s.ValidAfter), int64(s.ValidBefore), s.Signature.Bytes(), //nolint:gosec // Verify bounds both
		c.Service, c.Endpoint, c.PriceRevision, c.FeeBPS, c.Fingerprint[:], c.Method, c.Path, c.Source, c.Origin, c.Owner, c.Lease,
		int64(c.Block), c.Identifier).Scan(&id) //nolint:gosec // range-checked by chain
	if errors.Is(err, pgx.ErrNoRows) {
		return call.ID{}, false, nil
	}
	if broken, ok := errors.AsType[*pgconn.PgError](err); ok && broken.ConstraintName == "calls_identifier_unique" {
		return call.ID{}, false, ErrIdentifierTaken
	}
	if err != nil {
		return call.ID{}, false, fmt.Errorf("claim payment for call %s: %w", c.ID, err)
	}
	return id, true, nil
}

const findCallSQL = `
SELECT id, state, fingerprint, lease_until - market_now(), late, treasury, amount, valid_after, valid_before, signature,
       coalesce(payment_identifier, ''), source, market_now() - created_at
  FROM calls WHERE network = $1 AND asset = $2 AND payer = $3 AND nonce = $4`

// Find returns the call that a payment belongs to, or ErrUnclaimed.
func (Store) Find(ctx context.Context, db postgres.DB, i Identity) (Call, error) {
	var (
		c                                Call
		fingerprint, treasury, signature []byte
		after, before                    int64
		amount                           money.Amount
	)
	err := db.QueryRow(ctx, findCallSQL, i.Network, i.Asset[:], i.Payer[:], i.Nonce[:]).
		Scan(&c.ID, &c.State, &fingerprint, &c.LeaseLeft, &c.Late, &treasury, &amount, &after, &before, &signature,
			&c.Identifier, &c.Source, &c.Age)
	if errors.Is(err, pgx.ErrNoRows) {
		return Call{}, ErrUnclaimed
	}
	if err != nil {
		return Call{}, fmt.Errorf("find call of payment %x: %w", i.Nonce, err)
	}
	parsed, err := chain.ParseSignature(signature)
	if err != nil {
		return Call{}, fmt.Errorf("signature of call %s: %w", c.ID, err)
	}
	copy(c.Fingerprint[:], fingerprint)
	c.Signed = chain.Signed{Asset: i.Asset, Signature: parsed, Authorization: chain.Authorization{From: i.Payer, To: common.BytesToAddress(treasury), Value: amount,
		ValidAfter: uint64(after), ValidBefore: uint64(before), Nonce: i.Nonce}} //nolint:gosec // written from values that fit
	return c, nil
}

const findIdentifiedSQL = `SELECT id FROM calls WHERE payer = $1 AND payment_identifier = $2 AND state <> 'released'`

// FindIdentified returns the call of the payment that a payer gave a name.
func (Store) FindIdentified(ctx context.Context, db postgres.DB, payer common.Address, identifier string) (call.ID, error) {
	var id call.ID
	err := db.QueryRow(ctx, findIdentifiedSQL, payer[:], identifier).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return call.ID{}, ErrUnclaimed
	}
	if err != nil {
		return call.ID{}, fmt.Errorf("find call of payment %s: %w", identifier, err)
	}
	return id, nil
}

// The state that is expected stands in the statement, so of two writers one wins. The lease is let go: a retry, or the sweeper, goes on. A
// call that a retry took over while it was unclear stays unclear.
const unsettleSQL = `
UPDATE calls
   SET state = $3, state_since = market_now(), why = $4, sent_transaction = coalesce($5, sent_transaction), lease_until = market_now(),
       look_at = market_now(), looks = 0
 WHERE id = $1 AND owner = $2 AND state = ANY($6)`

// Unsettle records that a settlement did not come to a proof: to is released, unknown or rejected. sent is the transaction that carries
// the authorization; zero where none was sent.
func (Store) Unsettle(ctx context.Context, db postgres.DB, id call.ID, owner uuid.UUID, to call.State, why string, sent common.Hash) error {
	if !call.CanMove(call.Settling, to) {
		return fmt.Errorf("move call %s from settling to %s: not in the table", id, to)
	}
	from := []string{string(call.Settling)}
	if to == call.Unknown || call.CanMove(call.Unknown, to) {
		from = append(from, string(call.Unknown))
	}
	var transaction []byte
	if sent != (common.Hash{}) {
		transaction = sent[:]
	}
	tag, err := db.Exec(ctx, unsettleSQL, id, owner, to, why, transaction, from)
	if err != nil {
		return fmt.Errorf("move call %s to %s: %w", id, to, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("move call %s to %s: %w", id, to, ErrMoved)
	}
	return nil
}
