package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"market/internal/delivery"
	"market/internal/ledger"
	"market/internal/money"
	"market/internal/notify"
	"market/internal/reconcile"
)

const (
	// reconcileTime bounds one look at all networks. What it did not come to, the next one does: a scan is kept as it goes.
	reconcileTime = 50 * time.Second
	// differencesMax bounds those that are told at a time.
	differencesMax = 1_000
	reconciledBy   = "reconciliation"
)

// newReconciler joins what the chain says of our treasuries with what the other domains know.
func (a *App) newReconciler(open rails, restoredAt time.Time) *reconcile.Reconciler {
	var networks []reconcile.Network
	for _, r := range open {
		n := reconcile.Network{ID: r.network.ID, Depth: r.network.Confirmations, Node: r.node, Treasuries: r.treasuries()}
		for _, asset := range r.network.Assets {
			n.Assets = append(n.Assets, asset.Address)
		}
		networks = append(networks, n)
	}
	return reconcile.New(reconcile.Config{DB: a.db, Networks: networks, Book: bookUnexplained, Owing: a.owing, RestoredAt: restoredAt,
		Short: func(ctx context.Context, k reconcile.Key, held money.Amount, block uint64) (string, error) {
			return a.short(ctx, open, k, held, block)
		},
		Tell: func(c reconcile.Change) {
			line := a.log.Warn()
			if c.Over {
				line = a.log.Info()
			}
			line.Str("network", c.Network).Stringer("asset", c.Asset).Stringer("treasury", c.Treasury).Str("kind", string(c.Kind)).Str("subject", c.Subject).
				Bool("over", c.Over).Bool("closes", !c.ClosedAt.IsZero()).Msg("money differs: " + c.Text)
		}})
}

// bookUnexplained books to suspense what came and belongs to nobody.
func bookUnexplained(ctx context.Context, tx pgx.Tx, u reconcile.Unexplained) error {
	_, err := ledger.Store{}.Post(ctx, tx, ledger.Entry{
		Network: u.Network, Asset: u.Asset, Treasury: u.Treasury, Kind: ledger.Unexplained, Amount: u.Amount,
		Transfer: ledger.Transfer{Transaction: u.Transaction, LogIndex: u.LogIndex, Block: u.Block},
		Reason:   "it came from " + u.From.Hex() + ", and no call of ours says what for", By: reconciledBy,
	})
	if errors.Is(err, ledger.ErrBooked) {
		return reconcile.ErrBooked
	}
	return err
}

func (a *App) owing(ctx context.Context, network string) ([]reconcile.Key, error) {
	owed, err := delivery.Liabilities(ctx, a.db)
	if err != nil {
		return nil, err
	}
	var keys []reconcile.Key
	for _, l := range owed {
		if l.Network == network {
			keys = append(keys, reconcile.Key{Network: l.Network, Asset: l.Asset, Treasury: l.Treasury})
		}
	}
	return keys, nil
}

// short compares what a wallet held at a block with what it may have to give back of what came in up to it. Refunds that have left it since count as paid.
func (a *App) short(ctx context.Context, open rails, k reconcile.Key, held money.Amount, block uint64) (string, error) {
	owed, err := delivery.LiabilitiesOf(ctx, a.db, k.Network, block+1)
	if err != nil {
		return "", err
	}
	for _, r := range open {
		if r.network.ID != k.Network {
			continue
		}
		purse := delivery.Purse{Network: k.Network, Asset: k.Asset, Treasury: k.Treasury, Holds: held, Block: block + 1}
		l, short, err := delivery.Short(ctx, a.db, r.node, purse, delivery.OwedBy(owed, k.Network, k.Asset, k.Treasury))
		if err != nil || !short {
			return "", err
		}
		return fmt.Sprintf("the wallet held %s at block %d, and may have to give %s back", held, block, l.Owed()), nil
	}
	return "", nil
}

// reconcileOn reconciles every minute until ctx ends. The balances are folded first, because what is folded is known to be compared once it is.
func (a *App) reconcileOn(ctx context.Context) {
	failing := false
	delivery.Every(ctx, reconcile.Every, func(ctx context.Context) {
		err := errors.Join(ledger.Store{}.FoldDue(ctx, a.db), a.reconcileBy(ctx, a.reconciler.Due))
		if err != nil && !failing && ctx.Err() == nil {
			a.log.Error().Err(err).Msg("reconciliation") // once: it is tried again and again
		}
		failing = err != nil
	})
}

// reconcileNow reconciles every network at once, because somebody asks.
func (a *App) reconcileNow(ctx context.Context) error {
	err := a.reconcileBy(ctx, a.reconciler.Now)
	if err != nil {
		a.log.Error().Err(err).Msg("reconciliation that was asked for") // whoever asked is told that it stands here
	}
	return err
}

func (a *App) reconcileBy(ctx context.Context, how func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileTime)
	defer cancel()
	err := how(ctx)
	return errors.Join(err, a.differences.Load(ctx, a.db), a.tellDifferences(ctx))
}

// tellDifferences brings the notices to what is different now. It looks at all of them, so that a process which died between the two is made good.
func (a *App) tellDifferences(ctx context.Context) error {
	open, err := reconcile.Store{}.Open(ctx, a.db, differencesMax)
	if err != nil {
		return err
	}
	var store notify.Store
	told, err := store.OpenSubjects(ctx, a.db, []notify.Kind{notify.MoneyDiffers, notify.MoneyStopsNetwork, notify.MoneyUnexplained})
	if err != nil {
		return err
	}
	want := noticesOf(open)
	var errs []error
	for _, n := range want {
		if _, err := store.Raise(ctx, a.db, n.kind, n.subject, n.told); err != nil {
			errs = append(errs, err)
		}
	}
	for kind, subjects := range told {
		for _, subject := range subjects {
			if !wanted(want, kind, subject) {
				_, err := store.Settle(ctx, a.db, kind, subject)
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// A moneyNotice is what the operator is told of differences.
type moneyNotice struct {
	kind    notify.Kind
	subject string
	told    notify.Outage
}

func wanted(all []moneyNotice, kind notify.Kind, subject string) bool {
	for _, n := range all {
		if n.kind == kind && n.subject == subject {
			return true
		}
	}
	return false
}

const lookAtMoney = "market admin money, or GET /api/v1/admin/money, which has all of it\nthe wallet of the treasury in an explorer of the chain"

// noticesOf are the notices of what is different: one of each difference, one of a wallet that strangers have sent money to, and one of a network that is closed.
func noticesOf(open []reconcile.Difference) []moneyNotice {
	var all []moneyNotice
	add := func(kind notify.Kind, subject string, told notify.Outage) {
		if !wanted(all, kind, subject) {
			all = append(all, moneyNotice{kind, subject, told})
		}
	}
	for _, d := range open {
		if d.Kind == reconcile.Inflow {
			add(notify.MoneyUnexplained, d.Key.String(), notify.Outage{
				What:   fmt.Sprintf("money that belongs to no call came into treasury %s on %s: %s", d.Treasury, d.Network, d.Text),
				Effect: "nothing stops: it stands in suspense, and is the call's if one claims it. You are not told of more to this treasury while this is open",
				Look:   lookAtMoney,
			})
			continue
		}
		subject := strings.TrimSpace(d.Key.String() + " " + string(d.Kind) + " " + d.Subject)
		add(notify.MoneyDiffers, subject, notify.Outage{
			What:   fmt.Sprintf("the chain and our books differ for treasury %s on %s: %s", d.Treasury, d.Network, d.Text),
			Effect: "calls go on for now. Once it has lasted for 15 min, and at once where the wallet holds less than it owes, nobody new is asked to pay on that network",
			Look:   lookAtMoney,
		})
		if !d.ClosedAt.IsZero() {
			add(notify.MoneyStopsNetwork, d.Network, notify.Outage{
				What: fmt.Sprintf("new payments on the network %s are stopped, because the chain and our books differ there: %s", d.Network, d.Text),
				Effect: "callers are asked to pay on another network of the endpoint, and get 503 where there is none. Calls under way end, known payments are answered, refunds and trial " +
					"calls go on. It opens by itself when nothing differs any more",
				Look: lookAtMoney,
			})
		}
	}
	return all
}

// stopped says why nobody new is asked to pay on a network, though payments could be settled there.
func (a *App) stopped(network string) error {
	if err := a.switches.Stopped(network); err != nil {
		return err
	}
	return a.differences.Stopped(network)
}
