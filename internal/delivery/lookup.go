package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/money"
	"market/internal/postgres"
	"market/internal/refund"
)

// A Record is everything that is kept of one call.
type Record struct {
	Call     call.ID
	State    call.State // empty for a call that claimed no payment
	Outcome  call.Outcome
	Reason   call.Reason
	Party    call.Party
	Origin   call.Origin
	Detail   string
	Trial    bool
	Asked    bool
	Service  string // slug
	Endpoint uuid.UUID
	Method   string
	Path     string
	Status   int // of the upstream; zero: none came
	Why      string
	Review   bool // a person decides on it

	Network     string // of the payment; empty: none was claimed
	Asset       common.Address
	Payer       common.Address
	Treasury    common.Address // that it was signed for
	Amount      money.Amount
	Transaction common.Hash // that proves the payment, else the one that was sent, else zero
	Block       uint64
	Proved      bool
	// Word is whose word it is that the payment was settled, as long as nothing proves it; empty: nobody's. False: that word proved to be so.
	Word  string
	False bool
	// Dropped: the chain that showed the payment does not show it any more, and it is sent again. TakenBack: it never will.
	Dropped   bool
	TakenBack bool
	Refund    *refund.Refund

	Created  time.Time // zero for a call that claimed no payment
	AskedAt  time.Time
	Recorded time.Time
}

// ErrNoCall is that nothing is kept under an id.
var ErrNoCall = errors.New("no such call")

const lookupSQL = `
SELECT q.id, coalesce(c.state, ''), coalesce(d.outcome, ''), coalesce(d.reason, ''), coalesce(d.party, ''), coalesce(d.origin, c.origin),
       coalesce(d.detail, ''), coalesce(d.trial, false), coalesce(d.asked, c.asked_at IS NOT NULL), s.slug,
       coalesce(d.endpoint_id, c.endpoint_id), coalesce(d.method, c.method), coalesce(d.path, c.path), coalesce(d.upstream_status, 0),
       coalesce(c.why, ''), coalesce(c.network, ''), c.asset, c.payer, c.treasury, coalesce(c.amount, 0),
       coalesce(c.transaction, c.sent_transaction), coalesce(c.block_number, 0), c.transaction IS NOT NULL,
       CASE WHEN c.transaction IS NULL AND c.payment_state = 'sent' THEN c.word_of ELSE '' END,
       c.transaction IS NULL AND coalesce(c.payment_state = 'lost', false),
       c.transaction IS NOT NULL AND coalesce(c.payment_state = 'sent', false), c.transaction IS NOT NULL AND coalesce(c.payment_state = 'lost', false),
       coalesce(c.review, false),
       c.created_at, coalesce(d.asked_at, c.asked_at), d.recorded_at
  FROM unnest($1::uuid[]) WITH ORDINALITY AS q (id, place)
  LEFT JOIN calls c ON c.id = q.id
  LEFT JOIN deliveries d ON d.call_id = q.id
  JOIN services s ON s.id = coalesce(d.service_id, c.service_id)
 ORDER BY q.place`

// Lookup returns what is kept of a call, or ErrNoCall.
func Lookup(ctx context.Context, db postgres.DB, id call.ID) (Record, error) {
	found, err := lookupAll(ctx, db, []call.ID{id})
	if err != nil {
		return Record{}, err
	}
	if len(found) == 0 {
		return Record{}, ErrNoCall
	}
	return found[0], nil
}

// lookupAll returns what is kept of some calls, in their order. Of one that there is not, nothing is in it.
func lookupAll(ctx context.Context, db postgres.DB, ids []call.ID) ([]Record, error) {
	rows, err := db.Query(ctx, lookupSQL, ids)
	if err != nil {
		return nil, fmt.Errorf("look up %d calls: %w", len(ids), err)
	}
	records, err := pgx.CollectRows(rows, scanRecord)
	if err != nil {
		return nil, fmt.Errorf("look up %d calls: %w", len(ids), err)
	}
	owed, err := refund.Store{}.FindAll(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	for i := range records {
		if r, owes := owed[records[i].Call]; owes {
			records[i].Refund = &r
		}
	}
	return records, nil
}

func scanRecord(row pgx.CollectableRow) (r Record, err error) {
	var (
		asset, payer, treasury, transaction []byte
		block                               int64
		created, asked, recorded            *time.Time
	)
	err = row.Scan(&r.Call, &r.State, &r.Outcome, &r.Reason, &r.Party, &r.Origin, &r.Detail, &r.Trial, &r.Asked,
		&r.Service, &r.Endpoint, &r.Method, &r.Path, &r.Status, &r.Why, &r.Network, &asset, &payer, &treasury, &r.Amount, &transaction, &block,
		&r.Proved, &r.Word, &r.False, &r.Dropped, &r.TakenBack, &r.Review, &created, &asked, &recorded)
	if err != nil {
		return Record{}, err
	}
	r.Asset, r.Payer, r.Transaction = common.BytesToAddress(asset), common.BytesToAddress(payer), common.BytesToHash(transaction)
	r.Treasury = common.BytesToAddress(treasury)
	r.Block = uint64(block) //nolint:gosec // range-checked by chain when it was written
	for to, from := range map[*time.Time]*time.Time{&r.Created: created, &r.AskedAt: asked, &r.Recorded: recorded} {
		if from != nil {
			*to = from.UTC()
		}
	}
	return r, nil
}

// Charged says whether the caller's money is gone: pending while that is not known.
func (r Record) Charged() Charged {
	switch {
	case r.Outcome == call.Served && (r.Word != "" || r.Dropped):
		return ChargedPending
	case r.Outcome == call.Served && !r.Trial && !r.False && !r.TakenBack:
		return ChargedYes
	case r.Outcome != "" || r.State == call.StateReleased || r.State == "":
		return ChargedNo
	}
	return ChargedPending
}
