package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"market/internal/jobs"
)

// FoldArgs names the job that folds the balances.
type FoldArgs struct{}

// Kind is the job's name in the queue.
func (FoldArgs) Kind() string { return "ledger_fold" }

// Folding is the periodic job for it: what the balances are read of is a minute of postings, and not all of them.
func Folding() *river.PeriodicJob { return jobs.EveryMinute(FoldArgs{}) }

// FoldWorker folds the balances.
type FoldWorker struct {
	river.WorkerDefaults[FoldArgs]
	db *pgxpool.Pool
}

// NewFoldWorker returns the worker.
func NewFoldWorker(db *pgxpool.Pool) *FoldWorker { return &FoldWorker{db: db} }

// Timeout covers the first fold of long books: it goes on where it was cut.
func (*FoldWorker) Timeout(*river.Job[FoldArgs]) time.Duration { return time.Minute }

// Work folds once. An error is that of Fold: the next minute's finds as much and a little more.
func (w *FoldWorker) Work(ctx context.Context, _ *river.Job[FoldArgs]) error {
	return Store{}.Fold(ctx, w.db)
}
