package payment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/money"
	"market/internal/postgres"
)

const (
	// PayerWindow is how long a payment that the chain undid is held against its payer, and how far back open ones are looked for.
	PayerWindow = 24 * time.Hour
	// UndoneMax is how many payments within it the code of one payer's account may take back on the chain: each costs a transaction.
	UndoneMax = 2
)

// ownCode are the codes of payments that went through when they were simulated and that only the code of the payer's account can have undone.
var ownCode = []Code{CodeFailed, CodeSignature}

// OfOwnCode says whether a payment that the chain undid for this code was undone by the code of its payer's account.
func OfOwnCode(c Code) bool { return slices.Contains(ownCode, c) }

// A Payer is what is known of who pays.
type Payer struct {
	// Known says that a payment settled here within 7 days. Who has none is a stranger, whose means are checked before a claim.
	Known bool
	// Undone counts the payments of a day that went through when they were simulated, cost us a transaction, and were undone by the chain because
	// the payer's own code would not have them then. A key without code can not do that.
	Undone int
	// Broke counts those that the chain undid because the payer's money was gone by then.
	Broke int
	// Open are its other payments in the same asset that are not proved and not given up, the oldest first: each may still take its amount, also where
	// a facilitator said that it has.
	Open []Open
}

// An Open payment may have moved its amount, or may do so yet.
type Open struct {
	Nonce  common.Hash
	Amount money.Amount
}

// Each part has an index of its own: a busy payer has hundreds of thousands of calls a day, and this stands before each of them.
const payerSQL = `
SELECT EXISTS (SELECT 1 FROM calls WHERE payer = $1 AND created_at > market_now() - interval '7 days' AND transaction IS NOT NULL),
       reverted.undone, reverted.broke, open.nonces, open.amounts
  FROM (SELECT count(*) FILTER (WHERE why = ANY($3)) AS undone, count(*) FILTER (WHERE why = $4) AS broke
          FROM calls
         WHERE payer = $1 AND created_at > market_now() - $2::interval
           AND state IN ('rejected', 'refused') AND transaction IS NULL AND sent_transaction IS NOT NULL) AS reverted,
       (SELECT coalesce(array_agg(nonce ORDER BY created_at, id), '{}') AS nonces, coalesce(array_agg(amount::text ORDER BY created_at, id), '{}') AS amounts
          FROM (SELECT id, nonce, amount, created_at FROM calls
                 WHERE payer = $1 AND created_at > market_now() - $2::interval
                   AND state IN ('settling', 'unknown') AND network = $5 AND asset = $6 AND nonce <> $7
                UNION ALL
                SELECT id, nonce, amount, created_at FROM calls
                 WHERE payer = $1 AND created_at > market_now() - $2::interval
                   AND payment_state = 'sent' AND transaction IS NULL AND network = $5 AND asset = $6 AND nonce <> $7) AS unproved) AS open`

// Payer looks the payer of a payment up.
func (Store) Payer(ctx context.Context, db postgres.DB, i Identity) (Payer, error) {
	var (
		p       Payer
		nonces  [][]byte
		amounts []string
	)
	err := db.QueryRow(ctx, payerSQL, i.Payer[:], PayerWindow, ownCode, CodeFunds, i.Network, i.Asset[:], i.Nonce[:]).
		Scan(&p.Known, &p.Undone, &p.Broke, &nonces, &amounts)
	if err != nil {
		return Payer{}, fmt.Errorf("look up payer %s: %w", i.Payer, err)
	}
	for n, text := range amounts {
		amount, err := money.ParseAmount(text)
		if err != nil {
			return Payer{}, fmt.Errorf("look up payer %s: %w", i.Payer, err)
		}
		p.Open = append(p.Open, Open{Nonce: common.BytesToHash(nonces[n]), Amount: amount})
	}
	return p, nil
}
