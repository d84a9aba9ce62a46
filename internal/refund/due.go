package refund

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"market/internal/jobs"
)

// dueMax is how many refunds are handed out at a time.
const dueMax = 500

// DueArgs names the job that hands out what is due.
type DueArgs struct{}

// Kind is the job's name in the queue.
func (DueArgs) Kind() string { return "refunds_due" }

// Due is the periodic job for it. When a refund is tried next stands on its row, in market time; the queue only runs work now.
func Due() *river.PeriodicJob { return jobs.EverySecond(DueArgs{}) }

// DueWorker enqueues a job for each refund that is due.
type DueWorker struct {
	river.WorkerDefaults[DueArgs]
	db    *pgxpool.Pool
	store Store
}

// NewDueWorker returns the worker.
func NewDueWorker(db *pgxpool.Pool) *DueWorker { return &DueWorker{db: db} }

// Work leases what is due and enqueues it in the same transaction.
func (w *DueWorker) Work(ctx context.Context, _ *river.Job[DueArgs]) error {
	return w.handOut(ctx, river.ClientFromContext[pgx.Tx](ctx))
}

// handOut is Work with the queue that it is a job of. It asks the rows, and never the queue: a refund whose job was deleted, discarded or lost with a restore is
// due like any other, and one that has a live job gets no second.
func (w *DueWorker) handOut(ctx context.Context, queue *river.Client[pgx.Tx]) error {
	return pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		due, err := w.store.TakeDue(ctx, tx, dueMax)
		if err != nil || len(due) == 0 {
			return err
		}
		batch := make([]river.InsertManyParams, 0, len(due))
		for _, id := range due {
			batch = append(batch, river.InsertManyParams{Args: Args{Call: id}})
		}
		if _, err := queue.InsertManyTx(ctx, tx, batch); err != nil {
			return fmt.Errorf("enqueue %d due refunds: %w", len(due), err)
		}
		return nil
	})
}
