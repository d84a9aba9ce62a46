package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/rs/zerolog"

	"market/internal/delivery"
	"market/internal/letter"
	"market/internal/notify"
	"market/internal/payout"
	"market/internal/refund"
)

const (
	// refundsAtOnce is how many refunds one replica works on; each waits for a block.
	refundsAtOnce = 50
	// The rows say what became of the work; finished jobs are kept for a look, no longer.
	jobsKept = time.Hour
	// A job of a process that died still counts as running, and keeps another one for the same refund from being enqueued. No job takes so long
	// (see refund.Worker.Timeout, payout.Worker.Timeout, letter.Worker.Timeout), so then it is given up.
	stuckAfter = 90 * time.Second
)

// newJobs makes the job queue with its workers.
func newJobs(db *pgxpool.Pool, refunds map[string]refund.Rail, payouts map[string]payout.Rail, maker *payout.Maker, notices *notify.Sender, letters *letter.Worker, log zerolog.Logger) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, refund.NewWorker(db, refunds))
	river.AddWorker(workers, refund.NewDueWorker(db))
	river.AddWorker(workers, payout.NewWorker(db, payouts, delivery.PayoutTeller(payouts)))
	river.AddWorker(workers, payout.NewDueWorker(db))
	river.AddWorker(workers, payout.NewMakeWorker(maker))
	river.AddWorker(workers, notify.NewWorker(notices))
	river.AddWorker(workers, notify.NewDueWorker(notices))
	river.AddWorker(workers, letters)
	river.AddWorker(workers, letter.NewDueWorker(db))
	jobs, err := river.NewClient(riverpgxv5.New(db), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: refundsAtOnce}, payout.Queue: {MaxWorkers: payout.AtOnce},
			notify.Queue: {MaxWorkers: notify.AtOnce}, letter.Queue: {MaxWorkers: letter.AtOnce}},
		Workers:                     workers,
		PeriodicJobs:                []*river.PeriodicJob{refund.Due(), payout.Due(), payout.Making(), notify.Due(), letter.Due()},
		CompletedJobRetentionPeriod: jobsKept,
		DiscardedJobRetentionPeriod: 7 * 24 * time.Hour,
		RescueStuckJobsAfter:        stuckAfter,
		ErrorHandler:                jobErrors{log},
		Logger:                      slog.New(slog.DiscardHandler), // jobErrors says what matters
	})
	if err != nil {
		return nil, fmt.Errorf("make job queue: %w", err)
	}
	return jobs, nil
}

// jobErrors logs what a job could not do. When it is tried again stands on the row that it works on.
type jobErrors struct{ log zerolog.Logger }

func (h jobErrors) HandleError(_ context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	h.log.Warn().Err(err).Str("job", job.Kind).RawJSON("args", job.EncodedArgs).Msg("job")
	return nil
}

func (h jobErrors) HandlePanic(_ context.Context, job *rivertype.JobRow, panicked any, trace string) *river.ErrorHandlerResult {
	h.log.Error().Interface("panic", panicked).Str("trace", trace).Str("job", job.Kind).RawJSON("args", job.EncodedArgs).Msg("job")
	return nil
}
