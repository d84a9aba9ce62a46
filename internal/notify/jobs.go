package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"market/internal/jobs"
)

const (
	dueMax = 100 // messages handed out at a time
	// Queue is where messages are sent from: a mail server that hangs holds up no refund.
	Queue = "notices"
	// AtOnce is how many one replica sends at once.
	AtOnce = 4
	// jobTime is what every channel together may take, with what is kept of it.
	jobTime = 80 * time.Second
)

// DueArgs names the job that hands out what is due. When a message is tried next stands on its row, in market time; the queue only runs work now. It is
// not enqueued by Raise too: that runs in transactions of packages that know no queue, and a second is soon enough.
type DueArgs struct{}

// Kind is the job's name in the queue.
func (DueArgs) Kind() string { return "notices_due" }

// Due is the periodic job for it.
func Due() *river.PeriodicJob { return jobs.EverySecond(DueArgs{}) }

// DueWorker enqueues a job for each message that is due.
type DueWorker struct {
	river.WorkerDefaults[DueArgs]
	sender *Sender
}

// NewDueWorker returns the worker.
func NewDueWorker(s *Sender) *DueWorker { return &DueWorker{sender: s} }

// Work leases what is due and enqueues it in the same transaction.
func (w *DueWorker) Work(ctx context.Context, _ *river.Job[DueArgs]) error {
	queue := river.ClientFromContext[pgx.Tx](ctx)
	return w.sender.takeDue(ctx, dueMax, func(tx pgx.Tx, all []due) error {
		batch := make([]river.InsertManyParams, 0, len(all))
		for _, d := range all {
			batch = append(batch, river.InsertManyParams{Args: Args(d)})
		}
		if _, err := queue.InsertManyTx(ctx, tx, batch); err != nil {
			return fmt.Errorf("enqueue %d due notices: %w", len(all), err)
		}
		return nil
	})
}

// Args names the message that a job sends.
type Args struct {
	Notice uuid.UUID `json:"notice"`
	Phase  Phase     `json:"phase"`
}

// Kind is the job's name in the queue.
func (Args) Kind() string { return "notice" }

// InsertOpts keeps one live job a message, and no retry by the queue: when it is tried again is next_at of its row.
func (Args) InsertOpts() river.InsertOpts { return jobs.OneLive(Queue) }

// Worker sends one message.
type Worker struct {
	river.WorkerDefaults[Args]
	sender *Sender
}

// NewWorker returns the worker.
func NewWorker(s *Sender) *Worker { return &Worker{sender: s} }

// Timeout covers every channel.
func (*Worker) Timeout(*river.Job[Args]) time.Duration { return jobTime }

// Work sends the message of the job. An error is for the log; the message is due again when its lease has run out.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	return w.sender.send(ctx, due(job.Args))
}
