package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/crash"
	"market/internal/money"
	"market/internal/postgres"
	"market/internal/readiness"
)

const (
	// wordTime bounds the commit on a word. What is not written by then has to be proved.
	wordTime = 3 * time.Second
	// wordsAtOnce is how many words a process weighs at once. They take turns in the database, and each waits with a connection.
	wordsAtOnce = 4
	// wordsMax is how many payments of a network may be unproved at once, whatever they are worth: they are summed up before each word that is
	// believed, and the sweeper looks at each of them.
	wordsMax = 2000
	// wordPatience is how long a word may go unproved before the payment is sent again, or before a nonce that something else seems to have used
	// counts against it: a facilitator may speak before its transaction is mined, and an index of logs may lag behind the state.
	wordPatience = 30 * time.Second
	// wordResends is how many of them are sent again at once, and wordSendTime how long each may take: nobody waits for the proof, which the next
	// look finds, and the payments of others are to be followed meanwhile.
	wordResends  = 4
	wordSendTime = 3 * time.Second

	whyFalse = "a facilitator said that the payment was settled, and it never was"
)

// Words settles like a Settler, and offers the word of a facilitator with proof later, as soon as it is given, to whoever asks.
type Words interface {
	SettleOnWord(ctx context.Context, s chain.Signed, believe chain.Believe) chain.Settlement
}

// A bound is how many US dollars may be unproved at once on one network: as much of what the operator is willing to lose (b of the readiness formula) as leaves
// a proof of use for a while.
type bound struct {
	network chain.Network
	usd     decimal.Decimal
}

// units returns the network's assets and what a base unit of each is worth in US dollars.
func (b bound) units() (assets [][]byte, usd []string) {
	for _, a := range b.network.Assets {
		assets, usd = append(assets, a.Address[:]), append(usd, decimal.New(1, -int32(a.Decimals)).String()) //nolint:gosec // at most 77
	}
	return assets, usd
}

// show shows the authorization. Where a facilitator is believed on the way, the second commit has been made on its word and onWord is what it
// found; else nothing was written.
func (p *Path) show(ctx context.Context, r Request, h held, lease time.Duration) (result chain.Settlement, onWord *settlement) {
	if h.rail.Words == nil {
		return h.rail.Settler.Settle(ctx, h.signed), nil
	}
	result = h.rail.Words.SettleOnWord(ctx, h.signed, func(ctx context.Context, w chain.Word) bool {
		select {
		case p.weighing <- struct{}{}:
			defer func() { <-p.weighing }()
		default:
			return false // its proof is waited for, and no connection for its turn
		}
		own, cancel := detached(ctx, wordTime)
		defer cancel()
		crash.BeforeMove(h.state, call.Asked, call.Settled)
		standing, ok, err := believed(own, p.DB, h.id, p.owner, r.Target.Service.ID, w, bound{h.rail.Network, decimal.New(p.Ready.Words(), -6)}, lease)
		if err != nil {
			// If it was written all the same, the commit on the proof finds the call moved, and the sweeper goes on with it.
			p.OnError(err)
			return false
		}
		if !ok {
			return false
		}
		crash.AfterMove(h.state, standing.state())
		onWord = &settlement{standing: standing, proof: chain.Proof{Transaction: w.Transaction}, word: w.Of}
		return true
	})
	return result, onWord
}

// Replicas race for what is left of the budget. The row is locked in a statement of its own: a lock inside the next one would be newer than its
// snapshot, and it would not see what the other has taken.
const weighSQL = `INSERT INTO exposures (network) VALUES ($1) ON CONFLICT (network) DO UPDATE SET network = excluded.network`

// Whoever cannot have the row by then proves instead: that costs a caller a block, and waiting for it would cost everybody a connection.
const (
	weighWaitSQL     = `SET LOCAL lock_timeout = '200ms'`
	lockNotAvailable = "55P03" // what PostgreSQL says then
)

// One statement weighs the word and writes the settlement on it, as settledSQL does on a proof. The unproved sum is added up from the calls
// themselves, so no counter can drift; an asset that is not configured any more counts a dollar a unit. Who gave one word that proved false is
// not believed again: what it has said by then is in the sum, so all its lies together cost no more than the bound.
const believedSQL = `
WITH ` + standingSQL + `, unit AS (
	SELECT asset, usd FROM unnest($8::bytea[], $9::text[]::numeric[]) AS u (asset, usd)
), unproved AS (
	SELECT asset, amount FROM calls WHERE network = $7 AND payment_state = 'sent' AND transaction IS NULL LIMIT $11
), exposure AS (
	SELECT count(*) AS words, coalesce(sum(unproved.amount * coalesce(unit.usd, 1)), 0) AS usd
	  FROM unproved LEFT JOIN unit USING (asset)
)
UPDATE calls
   SET sent_transaction = $4, word_of = $5, word_at = service.now, payment_state = 'sent',
       state = CASE WHEN service.listed AND NOT service.cooling THEN 'asked' ELSE 'settled' END,
       asked_at = CASE WHEN service.listed AND NOT service.cooling THEN service.now END,
       state_since = service.now, lease_until = service.now + $6::interval, look_at = service.now, looks = 0,
       why = '' -- of an attempt before, which a transaction that reverted would be read from
  FROM service, exposure
 WHERE calls.id = $1 AND calls.owner = $2 AND calls.state IN ('settling', 'unknown') AND calls.network = $7
   AND exposure.words < $11
   AND exposure.usd + calls.amount * (SELECT usd FROM unit WHERE unit.asset = calls.asset) <= $10
   AND NOT EXISTS (SELECT 1 FROM calls f WHERE f.word_of = $5 AND f.payment_state = 'lost' AND f.transaction IS NULL)
RETURNING service.listed, service.cooling, service.rest, service.now`

// believed is the second commit of a paid call on a facilitator's word. ok is false where it does not fit into the bound, where its giver is not
// believed any more, where others weigh theirs for too long, and where the call is not ours to settle: nothing was written. All of it goes to the
// database at once, so that the row is never held while a process is waited for.
func believed(ctx context.Context, db *pgxpool.Pool, id call.ID, owner, service uuid.UUID, w chain.Word, b bound, lease time.Duration) (s standing, ok bool, err error) {
	assets, units := b.units()
	var batch pgx.Batch
	batch.Queue("BEGIN")
	batch.Queue(weighWaitSQL)
	batch.Queue(weighSQL, b.network.ID)
	batch.Queue(believedSQL, id, owner, service, w.Transaction[:], w.Of, lease, b.network.ID, assets, units, b.usd, wordsMax).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&s.listed, &s.cooling, &s.rest, &s.askedAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		ok = err == nil
		return err
	})
	batch.Queue("COMMIT")
	err = db.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		err := conn.SendBatch(ctx, &batch).Close()
		if err != nil && conn.Conn().PgConn().TxStatus() != 'I' {
			_, _ = conn.Exec(ctx, "ROLLBACK") // else the pool closes the connection, which does the same
		}
		return err
	})
	if failed, is := errors.AsType[*pgconn.PgError](err); is && failed.Code == lockNotAvailable {
		return standing{}, false, nil
	}
	if err != nil {
		return standing{}, false, fmt.Errorf("settle call %s on the word of facilitator %s: %w", id, w.Of, err)
	}
	return s, ok, nil
}

const sumUnprovedSQL = `
WITH unit AS (
	SELECT asset, usd FROM unnest($2::bytea[], $3::text[]::numeric[]) AS u (asset, usd)
), unproved AS (
	SELECT asset, amount FROM calls WHERE network = $1 AND payment_state = 'sent' AND transaction IS NULL LIMIT $4
)
SELECT coalesce(sum(unproved.amount * coalesce(unit.usd, 1)), 0)::text FROM unproved LEFT JOIN unit USING (asset)`

// Unproved is what is unproved on each network where facilitators are believed before there is a proof, in micro-dollars: as the weighing of a word adds it up.
func (p *Path) Unproved(ctx context.Context, db postgres.DB) (map[string]int64, error) {
	sums := map[string]int64{}
	for _, rail := range p.Rails {
		if rail.Words == nil {
			continue
		}
		var sum string
		assets, units := bound{network: rail.Network}.units()
		if err := db.QueryRow(ctx, sumUnprovedSQL, rail.Network.ID, assets, units, wordsMax+1).Scan(&sum); err != nil {
			return nil, fmt.Errorf("add up what is unproved on %s: %w", rail.Network.ID, err)
		}
		usd, err := decimal.NewFromString(sum)
		if err != nil {
			return nil, fmt.Errorf("add up what is unproved on %s: %w", rail.Network.ID, err)
		}
		sums[rail.Network.ID] = money.MicroUSD(usd)
	}
	return sums, nil
}

// sendWordAgain puts a payment on the chain that was to be there already, by whichever facilitator does it. The proof is found by the next look.
func (p *Path) sendWordAgain(ctx context.Context, rail Rail, c openCall) error {
	if c.WordAge < wordPatience {
		return nil
	}
	select {
	case p.resends <- struct{}{}:
		defer func() { <-p.resends }()
	default:
		return nil // looked at again
	}
	sending, cancel := context.WithTimeout(ctx, wordSendTime)
	defer cancel()
	began := time.Now()
	result := rail.Settler.Settle(sending, c.Signed)
	if result.Status == chain.StatusSettled {
		if result.ByUs {
			p.Ready.Proved(rail.Network.ID, readiness.Settle, began)
		}
		p.unseen.Delete(c.Word)
		return lives(ctx, p.DB, c, paymentMined, result.Proof, 0)
	}
	if limited(result.Err) {
		return nil // it was not sent, so nothing is known
	}
	if _, said := p.unseen.LoadOrStore(c.Word, nil); said {
		return nil
	}
	return errors.Join(fmt.Errorf("facilitator %s said %s ago that transaction %s settles it, which our node does not see; of its other payments that are not "+
		"seen nothing is said until one is", c.Word, c.WordAge.Truncate(time.Second), c.Sent), result.Err)
}
