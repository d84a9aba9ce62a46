package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/catalog"
	"market/internal/letter"
	"market/internal/payout"
)

// PayoutTeller writes to providers what became of their payouts on these rails: that one has arrived, or that it does not get through.
func PayoutTeller(rails map[string]payout.Rail) payout.Teller {
	return func(ctx context.Context, tx pgx.Tx, p payout.Payout) error {
		sum := p.Amount.String() + " units of " + p.Asset.Hex()
		if asset, known := rails[p.Network].Network.Asset(p.Asset); known {
			sum = asset.Sum(p.Amount)
		}
		told := &letter.Payout{ID: p.ID, Number: p.Number, Network: p.Network, Asset: p.Asset.Hex(), Amount: p.Amount.String(), Sum: sum, To: p.Address.Hex()}
		facts := letter.Facts{By: catalog.System.Name, Payout: told, Reason: p.Why,
			Next: "it is tried again every ten minutes, and paid as soon as that is over; what you earn meanwhile waits for the next one"}
		kind := letter.PayoutParked
		if p.State == payout.StateConfirmed {
			kind, told.Transaction = letter.PayoutPaid, p.Transaction.Hex()
			facts.Reason, facts.Next = "it has arrived, and is final", "what you earn from now on is paid by the next one"
		}
		return tellOwner(ctx, tx, p.Account, kind, facts)
	}
}

// TellAddress writes to a provider that the account is to be paid to another address: whoever did not do so has until then to take it back.
func TellAddress(ctx context.Context, tx pgx.Tx, account uuid.UUID, a payout.Address, by catalog.Author) error {
	told := &letter.PaidTo{Network: a.Network, Now: a.Now.Hex()}
	facts := letter.Facts{By: by.Name, PaidTo: told, Reason: "it was set with a session of your wallet", Next: "payouts on that network go there from now on"}
	if a.Next != (common.Address{}) {
		told.Next, told.NextAt = a.Next.Hex(), letter.TimeText(a.NextAt)
		facts.Next = "payouts go to the old address until " + a.NextAt.UTC().Format(time.DateTime) + " UTC. If it was not you, set the old address again before that, and look who has your wallet"
	}
	return tellOwner(ctx, tx, account, letter.PayoutAddress, facts)
}

// A letter belongs to a service, because its listing says where to. Each place is told once, by the oldest service that names it.
const toldOwnerSQL = `
SELECT DISTINCT ON (coalesce(notice_email, ''), coalesce(notice_webhook, '')) id, slug, name, state
  FROM services WHERE owner_id = $1
 ORDER BY coalesce(notice_email, ''), coalesce(notice_webhook, ''), state = 'retired', id LIMIT 100`

func tellOwner(ctx context.Context, tx pgx.Tx, account uuid.UUID, kind letter.Kind, facts letter.Facts) error {
	rows, err := tx.Query(ctx, toldOwnerSQL, account)
	if err != nil {
		return fmt.Errorf("read where to tell account %s: %w", account, err)
	}
	type place struct {
		id                uuid.UUID
		slug, name, state string
	}
	places, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p place, err error) {
		return p, row.Scan(&p.id, &p.slug, &p.name, &p.state)
	})
	if err != nil {
		return fmt.Errorf("read where to tell account %s: %w", account, err)
	}
	for _, p := range places {
		facts.Service, facts.Name, facts.State = p.slug, p.name, p.state
		if err := writeLetters(ctx, tx, telling{service: p.id, kinds: []letter.Kind{kind}}, facts); err != nil {
			return err
		}
	}
	return nil
}
