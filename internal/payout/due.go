package payout

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"market/internal/jobs"
)

// dueMax is how many payouts are handed out at a time.
const dueMax = 500

// DueArgs names the job that hands out what is due.
type DueArgs struct{}

// Kind is the job's name in the queue.
func (DueArgs) Kind() string { return "payouts_due" }

// Due is the periodic job for it. When a payout is tried next stands on its row, in market time; the queue only runs work now.
func Due() *river.PeriodicJob { return jobs.EverySecond(DueArgs{}) }

// DueWorker enqueues a job for each payout that is due.
type DueWorker struct {
	river.WorkerDefaults[DueArgs]
	db    *pgxpool.Pool
	store Store
}

// NewDueWorker returns the worker.
func NewDueWorker(db *pgxpool.Pool) *DueWorker { return &DueWorker{db: db} }

// Work leases what is due and enqueues it in the same transaction.
func (w *DueWorker) Work(ctx context.Context, _ *river.Job[DueArgs]) error {
	queue := river.ClientFromContext[pgx.Tx](ctx)
	return pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		due, err := w.store.TakeDue(ctx, tx, dueMax)
		if err != nil || len(due) == 0 {
			return err
		}
		batch := make([]river.InsertManyParams, 0, len(due))
		for _, id := range due {
			batch = append(batch, river.InsertManyParams{Args: Args{Payout: id}})
		}
		if _, err := queue.InsertManyTx(ctx, tx, batch); err != nil {
			return fmt.Errorf("enqueue %d due payouts: %w", len(due), err)
		}
		return nil
	})
}
