package letter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"market/internal/config"
	"market/internal/jobs"
	"market/internal/postgres"
	"market/internal/source"
)

const (
	// Queue is where letters wait for a worker: one of their own, so that receivers that take their time keep no refund waiting.
	Queue = "letters"
	// AtOnce is how many boxes one replica sends for at a time.
	AtOnce = 10

	dueMax = 500 // boxes handed out at a time

	sendTime = 30 * time.Second // one attempt
	workTime = 30 * time.Second // after it a job begins no other letter; what is left is due, and another job's
	keepTime = 10 * time.Second // to write down what came of an attempt
)

// A Contact is where the provider of a service is told, and with what a webhook is signed: the current secret first, then those that it replaced
// a short while ago.
type Contact struct {
	Email   string
	Webhook string
	Secrets []config.Secret
}

// A Book knows the contacts of services as they are now.
type Book interface {
	Contact(ctx context.Context, db postgres.DB, service uuid.UUID) (Contact, error)
}

// A Carrier takes a message to a provider, and returns the status of the answer where one came. A *source.LimitError says that nothing can go out by
// it now, whoever it is for; any other error is why this one did not arrive, in words for its provider.
type Carrier interface {
	Carry(ctx context.Context, to Contact, m Message) (status int, err error)
}

// Args names the box that a job sends for.
type Args Box

// Kind is the job's name in the queue.
func (Args) Kind() string { return "letters" }

// InsertOpts keeps one live job a box, so that letters go out one after the other, in their order; and no retry by the queue: when a letter is tried
// again stands on its row.
func (Args) InsertOpts() river.InsertOpts { return jobs.OneLive(Queue) }

// A Worker sends the letters of one box that are due.
type Worker struct {
	river.WorkerDefaults[Args]
	db        *pgxpool.Pool
	store     Store
	book      Book
	carriers  map[Channel]Carrier
	publicURL string
}

// NewWorker returns a worker that sends by these carriers; by a channel that has none everything fails. Links in letters begin with a public URL
// without a trailing slash.
func NewWorker(db *pgxpool.Pool, book Book, carriers map[Channel]Carrier, publicURL string) *Worker {
	return &Worker{db: db, book: book, carriers: carriers, publicURL: publicURL}
}

// Timeout covers what a job begins and the last attempt of it.
func (*Worker) Timeout(*river.Job[Args]) time.Duration { return workTime + sendTime + keepTime }

// Work sends until nothing is due, for a while at most. An error is for the log: what became of a letter stands on its row.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	for began := time.Now(); time.Since(began) < workTime; {
		more, err := w.one(ctx, Box(job.Args))
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// one sends the next letter of a box, and says whether there may be more.
func (w *Worker) one(ctx context.Context, b Box) (more bool, err error) {
	to, err := w.book.Contact(ctx, w.db, b.Service)
	if err != nil {
		return false, err
	}
	letter, found, err := w.store.claim(ctx, w.db, b)
	if err != nil || !found {
		return false, err
	}
	tried := letter.attempts - letter.before
	if tried > attemptsMax {
		// None of them came to an end. What kills whoever sends it is not tried for ever.
		return true, w.store.failed(ctx, w.db, letter, 0, true, 0, errStopped.Error())
	}
	status, failure := w.carry(ctx, to, letter)
	// The result is kept on a context of its own: the job's may be what ended the attempt.
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	if failure == nil {
		return true, w.store.sent(own, w.db, letter, status)
	}
	if limit, out := errors.AsType[*source.LimitError](failure); out {
		return false, w.store.putOff(own, w.db, letter, limit.Until)
	}
	wait, again := waitAfter(tried)
	if addressOf(to, b.Channel) == "" {
		again = false // nobody is there any more
	}
	return true, w.store.failed(own, w.db, letter, wait, !again, status, oneLine(failure.Error(), lineMax))
}

var (
	errNobody  = errors.New("the listing names no address for this any more")
	errNoWay   = errors.New("this market sends nothing this way: its operator has not set it up")
	errStopped = errors.New("the attempt was stopped on our side")
)

func (w *Worker) carry(ctx context.Context, to Contact, l claimed) (status int, err error) {
	if addressOf(to, l.box.Channel) == "" {
		return 0, errNobody
	}
	carrier := w.carriers[l.box.Channel]
	if carrier == nil {
		return 0, errNoWay
	}
	message, err := compose(l.Letter, w.publicURL)
	if err != nil {
		return 0, err
	}
	sending, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	status, err = carrier.Carry(sending, to, message)
	if err != nil && ctx.Err() != nil {
		err = errStopped
	}
	return status, err
}

func addressOf(to Contact, by Channel) string {
	switch by {
	case Email:
		return to.Email
	case Webhook:
		return to.Webhook
	}
	return ""
}

// DueArgs names the job that hands out what is due.
type DueArgs struct{}

// Kind is the job's name in the queue.
func (DueArgs) Kind() string { return "letters_due" }

// Due is the periodic job for it. When a letter is tried next stands on its row, in market time; the queue only runs work now. Nothing else enqueues
// letters: a second does not matter to who reads them.
func Due() *river.PeriodicJob { return jobs.EverySecond(DueArgs{}) }

// DueWorker enqueues a job for each box that has something due.
type DueWorker struct {
	river.WorkerDefaults[DueArgs]
	db    *pgxpool.Pool
	store Store
}

// NewDueWorker returns the worker.
func NewDueWorker(db *pgxpool.Pool) *DueWorker { return &DueWorker{db: db} }

// Work enqueues. A box whose job is still at work gets no second one; the letters are leased by whoever sends them.
func (w *DueWorker) Work(ctx context.Context, _ *river.Job[DueArgs]) error {
	due, err := w.store.Due(ctx, w.db, dueMax)
	if err != nil || len(due) == 0 {
		return err
	}
	batch := make([]river.InsertManyParams, 0, len(due))
	for _, box := range due {
		batch = append(batch, river.InsertManyParams{Args: Args(box)})
	}
	if _, err := river.ClientFromContext[pgx.Tx](ctx).InsertMany(ctx, batch); err != nil {
		return fmt.Errorf("enqueue letters of %d boxes: %w", len(due), err)
	}
	return nil
}
