package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/shopspring/decimal"

	"market/internal/jobs"
	"market/internal/money"
	"market/internal/plan"
	"market/internal/postgres"
)

// standingsMax is how many accounts are looked at by one statement.
const standingsMax = 500

// A Maker makes payouts: of whoever has passed the threshold of the plan, and of whoever asks.
type Maker struct {
	db    *pgxpool.Pool
	store Store
	rails map[string]Rail
	plans plan.Table
}

// NewMaker returns a maker of payouts on these rails, by CAIP-2 id.
func NewMaker(db *pgxpool.Pool, rails map[string]Rail, plans plan.Table) *Maker {
	return &Maker{db: db, rails: rails, plans: plans}
}

// Ours are the wallets on a network that nobody is paid to, its tokens among them; false: the network is not configured.
func (m *Maker) Ours(network string) ([]common.Address, bool) {
	rail, known := m.rails[network]
	ours := append([]common.Address{}, rail.Ours...)
	for _, a := range rail.Network.Assets {
		ours = append(ours, a.Address)
	}
	return ours, known
}

// least is what a payout of an asset comes to at least: so many US dollars, and never less than the floor of its network, below which the gas of the transfer
// may cost more than it brings.
func (r Rail) least(asset common.Address, usd decimal.Decimal) (money.Amount, error) {
	of, known := r.Network.Asset(asset)
	if !known {
		return money.Amount{}, fmt.Errorf("asset %s is not configured any more", asset)
	}
	units := decimal.Max(usd, r.Network.FloorUSD).Shift(int32(of.Decimals)).Ceil() //nolint:gosec // a token has few decimals
	least, err := money.FromBig(units.BigInt())
	if err != nil || !least.IsZero() {
		return least, err
	}
	return money.FromUnits(1), nil
}

// Pass makes the payouts of all accounts whose balance has passed the threshold of their plan. One that can not be made holds up no other.
func (m *Maker) Pass(ctx context.Context) error {
	var networks []string
	for id := range m.rails {
		networks = append(networks, id)
	}
	var (
		after Purse
		errs  []error
	)
	for {
		all, err := m.store.Standings(ctx, m.db, networks, after, standingsMax)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, s := range all {
			after = s.Purse
			if err := m.reach(ctx, s); err != nil {
				errs = append(errs, err)
			}
		}
		if len(all) < standingsMax {
			return errors.Join(errs...)
		}
	}
}

// reach makes the payout of an account that has reached its threshold, of what is final alone.
func (m *Maker) reach(ctx context.Context, s Standing) error {
	rail := m.rails[s.Network]
	least, err := rail.least(s.Asset, decimal.New(int64(m.plans.Of(s.Plan).PayoutThreshold), -2))
	if err != nil {
		return fmt.Errorf("make payout of account %s: %w", s.Account, err)
	}
	if s.Amount.Cmp(least) < 0 {
		return nil
	}
	_, err = m.store.Make(ctx, m.db, s.Purse, rail.Network.ChainID, least, rail.Ours, "the threshold of the plan")
	if errors.Is(err, ErrTooLittle) || errors.Is(err, ErrOpen) || errors.Is(err, ErrNoAddress) {
		return nil
	}
	return err
}

// PayNow makes the payouts of whatever is there for an account on a network in an asset, of each treasury that holds some of it: at least the floor of the
// network. The error is that of the first treasury where none was made at all.
func (m *Maker) PayNow(ctx context.Context, db postgres.DB, account uuid.UUID, network string, asset common.Address, by string) (made []Payout, err error) {
	rail, known := m.rails[network]
	if !known {
		return nil, ErrNone
	}
	least, err := rail.least(asset, decimal.Zero)
	if err != nil {
		return nil, ErrNone
	}
	var why error
	for _, treasury := range rail.Ours {
		if _, ours := rail.Treasuries[treasury]; !ours {
			continue
		}
		p, err := m.store.Make(ctx, db, Purse{account, network, asset, treasury}, rail.Network.ChainID, least, rail.Ours, by)
		switch {
		case err == nil:
			made = append(made, p)
		case errors.Is(err, ErrTooLittle) || errors.Is(err, ErrOpen) || errors.Is(err, ErrNoAddress):
			if why == nil || errors.Is(why, ErrTooLittle) {
				why = err
			}
		default:
			return nil, err
		}
	}
	if len(made) == 0 {
		return nil, why
	}
	return made, nil
}

// MakeArgs names the job that makes payouts.
type MakeArgs struct{}

// Kind is the job's name in the queue.
func (MakeArgs) Kind() string { return "payouts_make" }

// Making is the periodic job for it.
func Making() *river.PeriodicJob { return jobs.EveryMinute(MakeArgs{}) }

// MakeWorker runs a Maker's pass.
type MakeWorker struct {
	river.WorkerDefaults[MakeArgs]
	maker *Maker
}

// NewMakeWorker returns the worker.
func NewMakeWorker(m *Maker) *MakeWorker { return &MakeWorker{maker: m} }

// Timeout covers a pass over all accounts; what it did not come to is done by the next.
func (*MakeWorker) Timeout(*river.Job[MakeArgs]) time.Duration { return time.Minute }

// Work makes one pass.
func (w *MakeWorker) Work(ctx context.Context, _ *river.Job[MakeArgs]) error {
	return w.maker.Pass(ctx)
}
