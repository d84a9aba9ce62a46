package notify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// What stops without anybody running into it. Package watch looks for it.
const (
	// TreasuryShort is that a treasury holds less than it owes; its subject is the network, the asset and the treasury.
	TreasuryShort Kind = "treasury_short"
	// GasLow is that the gas wallet of a network is nearly empty; its subject is the network.
	GasLow Kind = "gas_low"
	// RefundsLate is that refunds of a network are owed for longer than they take; its subject is the network.
	RefundsLate Kind = "refunds_late"
	// PayoutsParked is that payouts of a network do not get through by themselves; its subject is the network.
	PayoutsParked Kind = "payouts_parked"
	// NothingSettles is that payments are tried and none settles. It has no subject.
	NothingSettles Kind = "nothing_settles"
	// NetworkNotReady is that no payment is taken on a network; its subject is the network.
	NetworkNotReady Kind = "network_not_ready"
	// JobDiscarded is that jobs of a kind were given up, or that a periodic one does not run; its subject is the kind of job.
	JobDiscarded Kind = "job_discarded"
	// WorkStopped is that work beside the calls does not come round; its subject is the replica and the loop.
	WorkStopped Kind = "work_stopped"
	// ClockApart is that the clock of a process and the database's differ; its subject is the replica.
	ClockApart Kind = "clock_apart"
	// PaymentsStopped is that the operator has stopped new payments on a network; its subject is the network.
	PaymentsStopped Kind = "payments_stopped"
	// StrikesSuspended is that the operator has suspended strikes. It has no subject.
	StrikesSuspended Kind = "strikes_suspended"
	// PayoutsStopped is that the operator has stopped payouts. It has no subject.
	PayoutsStopped Kind = "payouts_stopped"
)

// Conditions are the kinds of what package watch looks for.
func Conditions() []Kind {
	return []Kind{TreasuryShort, GasLow, RefundsLate, PayoutsParked, NothingSettles, NetworkNotReady, JobDiscarded, WorkStopped, ClockApart, PaymentsStopped, StrikesSuspended, PayoutsStopped}
}

// Kinds are all kinds that there are.
func Kinds() []Kind {
	return append(Conditions(), SourceOut, GuardReached, ChannelOut, Test, OwnOutage, ServiceHeld, HoldingStopped, OwnTraffic, UnattributedTraffic,
		MoneyDiffers, MoneyStopsNetwork, MoneyUnexplained)
}

const openSubjectsSQL = `SELECT kind, subject FROM notices WHERE kind = ANY($1) AND settled_at IS NULL AND calm_since IS NULL ORDER BY raised_at, id LIMIT $2`

// OpenSubjects returns the subjects of the open notices of some kinds, the oldest first. As in Open, one that is calm is none of them.
func (Store) OpenSubjects(ctx context.Context, db postgres.DB, kinds []Kind) (map[Kind][]string, error) {
	rows, err := db.Query(ctx, openSubjectsSQL, kinds, openMax)
	if err != nil {
		return nil, fmt.Errorf("list what notices are open about: %w", err)
	}
	var (
		open    = map[Kind][]string{}
		kind    Kind
		subject string
	)
	if _, err := pgx.ForEachRow(rows, []any{&kind, &subject}, func() error {
		open[kind] = append(open[kind], subject)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list what notices are open about: %w", err)
	}
	return open, nil
}
