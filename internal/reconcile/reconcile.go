package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
	"market/internal/money"
)

const (
	// Every is how often a network is reconciled, by one process of all.
	Every = time.Minute
	// bookMax bounds what one look books to suspense: whoever sends a thousand transfers has them booked one after another.
	bookMax = 20
	// serializationFailure is what PostgreSQL says to the later of two that look at once.
	serializationFailure = "40001"
)

// A Network is one on which we have wallets.
type Network struct {
	ID         string
	Depth      int // at which a transfer is final; the head is 1
	Node       Node
	Assets     []common.Address
	Treasuries []common.Address // today's, and those that it replaced
}

// An Unexplained inflow is one that is to stand in suspense.
type Unexplained struct {
	Key
	From        common.Address
	Amount      money.Amount
	Transaction common.Hash
	LogIndex    uint
	Block       uint64
}

// ErrBooked is what Book says of an inflow that stands in the books already.
var ErrBooked = errors.New("booked already")

// Config is what a Reconciler is built from. What other domains know comes by functions.
type Config struct {
	DB       *pgxpool.Pool
	Networks []Network
	// Book writes an inflow to suspense, in the transaction that names it.
	Book func(ctx context.Context, tx pgx.Tx, u Unexplained) error
	// Short says in words how a wallet holds less than it may have to give back, and nothing where it does not.
	Short func(ctx context.Context, k Key, held money.Amount, block uint64) (string, error)
	// Owing returns the treasuries that may have to give something back, whether they are configured or not.
	Owing func(ctx context.Context, network string) ([]Key, error)
	Tell  func(Change)
	// RestoredAt is when a backup was restored; zero: never. What was done since the backup has no rows here, and no row will ever explain it: so a wallet
	// that was opened before begins anew, with what it holds then.
	RestoredAt time.Time
}

// A Reconciler holds what the chain says against what we say. Its methods may be called concurrently, and by any number of processes.
type Reconciler struct {
	Config
	store Store

	mu    sync.Mutex
	paces map[string]*pace // by network
}

// New returns a reconciler.
func New(c Config) *Reconciler { return &Reconciler{Config: c, paces: map[string]*pace{}} }

func (r *Reconciler) paceOf(network string) *pace {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paces[network] == nil {
		r.paces[network] = &pace{span: spanMax}
	}
	p := *r.paces[network] // a copy: two looks at once may not share one
	return &p
}

func (r *Reconciler) keepPace(network string, p *pace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := *p
	r.paces[network] = &kept
}

// Of the processes that come to a network in one minute the first has the turn.
const turnSQL = `
INSERT INTO reconcilings AS r (network, due_at) VALUES ($1, market_now() + $2::interval)
ON CONFLICT (network) DO UPDATE SET due_at = excluded.due_at WHERE r.due_at <= market_now()`

// Due looks at every network whose turn it is.
func (r *Reconciler) Due(ctx context.Context) error {
	var errs []error
	for _, n := range r.Networks {
		// A little less than the pause between two looks, so that the one who comes a moment early is not the one who is too late.
		tag, err := r.DB.Exec(ctx, turnSQL, n.ID, Every-5*time.Second)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("take the turn of %s: %w", n.ID, err))
		case tag.RowsAffected() == 1:
			errs = append(errs, r.look(ctx, n))
		}
	}
	return errors.Join(errs...)
}

// Now looks at every network, whoever looked when.
func (r *Reconciler) Now(ctx context.Context) error {
	var errs []error
	for _, n := range r.Networks {
		errs = append(errs, r.look(ctx, n))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) look(ctx context.Context, n Network) error {
	keys, err := r.keys(ctx, n)
	if err != nil {
		return err
	}
	var errs []error
	for _, k := range keys {
		err := r.lookAt(ctx, n, k)
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == serializationFailure {
			err = ErrMoved
		}
		if !errors.Is(err, ErrMoved) { // somebody else looks at it this very moment
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keys are the wallets of a network: those that are configured, and those that owe something. So a treasury that was replaced is reconciled while it owes.
func (r *Reconciler) keys(ctx context.Context, n Network) ([]Key, error) {
	var all []Key
	seen := map[Key]bool{}
	add := func(k Key) {
		if !seen[k] {
			seen[k] = true
			all = append(all, k)
		}
	}
	for _, asset := range n.Assets {
		for _, treasury := range n.Treasuries {
			add(Key{n.ID, asset, treasury})
		}
	}
	owing, err := r.Owing(ctx, n.ID)
	if err != nil {
		return nil, err
	}
	for _, k := range owing {
		add(k)
	}
	return all, nil
}

const astraySQL = `SELECT EXISTS (SELECT 1 FROM suspicions WHERE network = $1 AND asset = $2 AND treasury = $3 AND kind IN ('wallet', 'row'))`

func (r *Reconciler) lookAt(ctx context.Context, n Network, k Key) error {
	// Where logs are missing they are read again: what a node left out once it may have the next time.
	var astray bool
	if err := r.DB.QueryRow(ctx, astraySQL, k.Network, k.Asset[:], k.Treasury[:]).Scan(&astray); err != nil {
		return fmt.Errorf("read suspicions of wallet %s: %w", k, err)
	}
	reorganised, err := r.scan(ctx, n, k, astray)
	if reorganised {
		if err := r.tellReorganised(ctx, n, k); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	s, err := r.store.find(ctx, r.DB, k)
	if err != nil {
		return err
	}
	if s.Scanned.Block != s.HeldBlock {
		return nil // somebody else is on the way
	}
	short, err := r.Short(ctx, k, s.Held, s.HeldBlock)
	if err != nil {
		return fmt.Errorf("compare wallet %s with what it owes: %w", k, err)
	}
	changes, book, err := r.compare(ctx, s, short)
	if err != nil {
		return err
	}
	for _, c := range changes {
		r.Tell(c)
	}
	return r.bookAll(ctx, book)
}

// compare is one transaction that sees one instant, and asks no network.
func (r *Reconciler) compare(ctx context.Context, s State, short string) (changes []Change, book []Unexplained, err error) {
	err = pgx.BeginTxFunc(ctx, r.DB, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, giveBackSQL, s.Network); err != nil {
			return fmt.Errorf("give back what was claimed out of suspense on %s: %w", s.Network, err)
		}
		f, err := compare(ctx, tx, s)
		if err != nil {
			return err
		}
		if short != "" {
			f.add(Liabilities, "", "%s", short)
		}
		var toBook []Suspicion
		if changes, toBook, err = conclude(ctx, tx, s.Key, f.suspicions); err != nil {
			return fmt.Errorf("conclude on wallet %s: %w", s.Key, err)
		}
		for _, b := range toBook[:min(len(toBook), bookMax)] {
			in := f.inflows[b.Subject]
			book = append(book, Unexplained{Key: in.Key, From: in.counterparty, Amount: in.amount, Transaction: in.transaction, LogIndex: in.logIndex, Block: in.block})
		}
		return nil
	})
	return changes, book, err
}

// bookAll books inflows to suspense, each with its difference. They close nothing: anybody can send dust, and that must not close the market.
func (r *Reconciler) bookAll(ctx context.Context, all []Unexplained) error {
	var errs []error
	for _, u := range all {
		var named []Difference
		err := pgx.BeginFunc(ctx, r.DB, func(tx pgx.Tx) (err error) {
			if err := r.Book(ctx, tx, u); err != nil {
				return err
			}
			s := Suspicion{Inflow, subjectOf(u.Transaction[:], int32(u.LogIndex)), //nolint:gosec // range-checked by chain
				fmt.Sprintf("%s came from %s in block %d, and no call of ours says what for: it stands in suspense", u.Amount, u.From, u.Block)}
			named, err = differences(ctx, tx, nameNowSQL, u.Network, u.Asset[:], u.Treasury[:], s.Kind, s.Subject, s.Text)
			return err
		})
		if errors.Is(err, ErrBooked) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("book what came by %s: %w", u.Transaction, err))
			continue
		}
		for _, d := range named {
			r.Tell(Change{Difference: d})
		}
	}
	return errors.Join(errs...)
}

const nameNowSQL = `
INSERT INTO differences (network, asset, treasury, kind, subject, text, since) VALUES ($1, $2, $3, $4, $5, $6, market_now())
ON CONFLICT (network, asset, treasury, kind, subject) WHERE ended_at IS NULL DO NOTHING
RETURNING ` + diffColumnsSQL

func (r *Reconciler) tellReorganised(ctx context.Context, n Network, k Key) error {
	told, err := differences(ctx, r.DB, reorganisedSQL, k.Network, k.Asset[:], k.Treasury[:],
		fmt.Sprintf("blocks of %s that were final at a depth of %d were replaced; its logs are read again", n.ID, n.Depth))
	if err != nil {
		return fmt.Errorf("write that %s was reorganised: %w", n.ID, err)
	}
	for _, d := range told {
		r.Tell(Change{Difference: d, Over: true})
	}
	return nil
}

var _ Node = (*chain.Node)(nil)
