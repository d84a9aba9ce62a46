package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/crash"
	"market/internal/jobs"
	"market/internal/source"
)

const (
	// validFor is how long a signed refund may be sent; after it has lapsed another may be signed.
	validFor = 10 * 60 // seconds
	// validMargin is the life that a signature must have left to be sent once more.
	validMargin = 60 // seconds

	blockWait  = time.Second // until looking again for depth
	parkedWait = time.Minute
	retryMin   = time.Second
	retryMax   = time.Minute
	sendTime   = 20 * time.Second
)

// Node reads what the worker has to know of one network.
type Node interface {
	FreshHead(ctx context.Context) (chain.Head, error)
	Locate(ctx context.Context, want chain.Expect, transaction common.Hash) (proof chain.Proof, depth int, found bool, err error)
	FindSettlement(ctx context.Context, want chain.Expect, fromBlock uint64) (chain.Proof, bool, error)
	AuthorizationUsed(ctx context.Context, asset, authorizer common.Address, nonce common.Hash) (bool, error)
	LapsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, validBefore uint64, depth int) (bool, error)
}

// Sender puts an authorization on the chain: a facilitator.
type Sender interface {
	Settle(ctx context.Context, s chain.Signed) chain.Settlement
}

// A Rail is what pays refunds on one network.
type Rail struct {
	Network    chain.Network
	Node       Node
	Sender     Sender
	Units      Units                        // nil: what the sender is shown is not counted, as with our own engine
	Treasuries map[common.Address]chain.Key // today's, and those that it replaced: what a treasury received it gives back
}

// Treasuries indexes keys by their addresses.
func Treasuries(keys ...chain.Key) map[common.Address]chain.Key {
	out := map[common.Address]chain.Key{}
	for _, k := range keys {
		out[k.Address()] = k
	}
	return out
}

// Args names the refund that a job works on.
type Args struct {
	Call call.ID `json:"call"`
}

// Kind is the job's name in the queue.
func (Args) Kind() string { return "refund" }

// InsertOpts keeps one live job a refund, and no retry by the queue: when a refund is tried again is next_at of its row.
func (Args) InsertOpts() river.InsertOpts { return jobs.OneLive("") }

// Worker takes one refund one step further: waits for the payment to be final, signs, sends, confirms. Each step reads the chain first,
// so running it twice, or on two replicas at once, changes nothing.
type Worker struct {
	river.WorkerDefaults[Args]
	db    *pgxpool.Pool
	store Store
	rails map[string]Rail // by CAIP-2 id
}

// NewWorker returns a worker for these networks.
func NewWorker(db *pgxpool.Pool, rails map[string]Rail) *Worker { return &Worker{db: db, rails: rails} }

// Timeout covers one send and the reads around it.
func (*Worker) Timeout(*river.Job[Args]) time.Duration { return sendTime + 40*time.Second }

// Work takes the refund of the job one step further. An error is for the log; the next attempt is on the row already.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	id := job.Args.Call
	r, err := w.store.Find(ctx, w.db, id)
	if errors.Is(err, ErrNone) || (err == nil && (r.State == StateConfirmed || r.State == StateVoid || r.Waiting)) {
		return nil // a job that was queued before its refund was put off has nothing to do
	}
	if err != nil {
		return err
	}
	next, err := w.step(ctx, r)
	limit, out := errors.AsType[*source.LimitError](err)
	wait := retryAfter(r.Attempts)
	if _, asked := errors.AsType[*askedError](err); asked && out && limit.Why == source.Paced {
		// It has cost a unit, and the next may be answered the same: so this one backs off by itself, and nothing waits for that source, which is not out.
		wait, out = max(wait, limit.Wait), false
	}
	if out {
		// It is known why nothing is sent, and until when: no error, and no attempt.
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return w.store.waitFor(own, w.db, r.Payment.Network, id, limit)
	}
	if err != nil {
		// The row is put off on a context of its own: the job's may be what ended the step.
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(err, w.store.later(own, w.db, r, "", wait, 1, "the chain could not be read or written"))
	}
	if next.proof != nil {
		crash.Before(crash.RefundConfirm)
		if err := w.store.confirm(ctx, w.db, id, *next.proof); err != nil {
			return err
		}
		crash.After(crash.RefundConfirm)
		return nil
	}
	return w.store.later(ctx, w.db, r, next.state, next.wait, 0, next.why)
}

// retryAfter doubles from retryMin to retryMax over the attempts that went wrong.
func retryAfter(attempts int) time.Duration {
	if attempts > 6 {
		return retryMax
	}
	return min(retryMax, retryMin<<attempts)
}

// A verdict is what one step found: a proof, or the state to wait in and how long.
type verdict struct {
	proof *chain.Proof
	state State
	wait  time.Duration
	why   string
}

func (w *Worker) step(ctx context.Context, r Refund) (verdict, error) {
	rail, known := w.rails[r.Payment.Network]
	if _, held := rail.Treasuries[r.Payment.Treasury]; !known || !held {
		return verdict{state: StateParked, wait: parkedWait, why: "this program does not hold the key that received the payment"}, nil
	}
	payment, depth, found, err := rail.Node.Locate(ctx, r.expectPayment(), r.Payment.Transaction)
	if err != nil {
		return verdict{}, fmt.Errorf("locate payment of refund %s: %w", r.Payment.Call, err)
	}
	if !found || depth < rail.Network.Confirmations {
		return verdict{state: r.State, wait: blockWait, why: "waiting for the payment to be final"}, nil
	}
	var used bool
	var next verdict
	// One node has to say both that the nonce is used and where: another one may not have come that far.
	err = chain.OneView(ctx, func(ctx context.Context) error {
		var err error
		if used, err = rail.Node.AuthorizationUsed(ctx, r.Payment.Asset, r.Payment.Treasury, r.Nonce); err != nil {
			return fmt.Errorf("read authorization of refund %s: %w", r.Payment.Call, err)
		}
		if used {
			next, err = w.confirmable(ctx, rail, r, payment.BlockNumber)
		}
		return err
	})
	if err != nil || used {
		return next, err
	}
	return w.send(ctx, rail, r)
}

// confirmable looks for the log of a refund whose nonce is used.
func (w *Worker) confirmable(ctx context.Context, rail Rail, r Refund, fromBlock uint64) (verdict, error) {
	proof, found, err := rail.Node.FindSettlement(ctx, r.expectRefund(), fromBlock)
	if err != nil {
		return verdict{}, fmt.Errorf("find transfer of refund %s: %w", r.Payment.Call, err)
	}
	if !found {
		return verdict{state: StateParked, wait: parkedWait, why: "its nonce is used, and not by this refund"}, nil
	}
	proof, depth, found, err := rail.Node.Locate(ctx, r.expectRefund(), proof.Transaction)
	if err != nil {
		return verdict{}, fmt.Errorf("locate transfer of refund %s: %w", r.Payment.Call, err)
	}
	if !found || depth < rail.Network.Confirmations {
		return verdict{state: StateSent, wait: blockWait, why: "waiting for the refund to be final"}, nil
	}
	return verdict{proof: &proof}, nil
}

// send shows a signed authorization to the chain: the one that is still valid, or a new one once all before it have lapsed.
func (w *Worker) send(ctx context.Context, rail Rail, r Refund) (next verdict, err error) {
	// Before anything is signed: a signature lives for minutes, and a source may be out for days.
	if rail.Units != nil {
		if err := rail.Units.Limited(r.UnitOf); err != nil {
			return verdict{}, err
		}
	}
	signed, waiting, err := w.authorize(ctx, rail, r)
	if err != nil {
		return verdict{}, err
	}
	if waiting {
		return verdict{state: r.State, wait: blockWait, why: "waiting for an earlier signature to lapse"}, nil
	}
	sending, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	sending, end, err := w.reserve(sending, rail, r)
	if err != nil {
		return verdict{}, err
	}
	defer func() { err = errors.Join(err, end()) }()
	s := rail.Sender.Settle(sending, signed)
	if s.Status == chain.StatusUnknown && s.Transaction == (common.Hash{}) && s.Err != nil {
		// Nobody says that it is on its way, so it is sent again; not every second, because a facilitator may count what it is asked.
		return verdict{}, &askedError{fmt.Errorf("send refund %s: %w", r.Payment.Call, s.Err)}
	}
	switch s.Status {
	case chain.StatusSettled, chain.StatusUnknown:
		return verdict{state: StateSent, wait: blockWait, why: "waiting for the refund to be final"}, nil
	case chain.StatusReleased, chain.StatusRejected:
		// The payer is our own treasury here; a blocklisted one may be the recipient.
		if revert, ok := errors.AsType[*chain.Revert](s.Err); s.PayerFault || ok && revert.Kind == chain.RevertBlocked {
			return verdict{state: StateParked, wait: parkedWait, why: "the token refused it: " + s.Why}, nil
		}
		return verdict{}, errors.Join(fmt.Errorf("send refund %s: %s", r.Payment.Call, s.Why), s.Err)
	}
	return verdict{}, fmt.Errorf("send refund %s: settlement without a status", r.Payment.Call)
}

// An askedError is of a refund that was, or may have been, shown to somebody.
type askedError struct{ error }

func (e *askedError) Unwrap() error { return e.error }

// authorize returns the authorization to show. waiting means that an earlier one neither lives nor is proved lapsed.
func (w *Worker) authorize(ctx context.Context, rail Rail, r Refund) (signed chain.Signed, waiting bool, err error) {
	head, err := rail.Node.FreshHead(ctx)
	if err != nil {
		return chain.Signed{}, false, fmt.Errorf("read head for refund %s: %w", r.Payment.Call, err)
	}
	before, err := w.store.signatures(ctx, w.db, r.Payment.Call)
	if err != nil {
		return chain.Signed{}, false, err
	}
	if len(before) > 0 {
		last := before[0]
		if last.validBefore >= head.Time+validMargin {
			return chain.Signed{Asset: r.Payment.Asset, Authorization: r.authorization(last.validBefore), Signature: last.bytes}, false, nil
		}
		lapsed, err := rail.Node.LapsedAt(ctx, r.Payment.Asset, r.Payment.Treasury, r.Nonce, last.validBefore, rail.Network.Confirmations)
		if err != nil {
			return chain.Signed{}, false, fmt.Errorf("prove lapse for refund %s: %w", r.Payment.Call, err)
		}
		if !lapsed {
			return chain.Signed{}, true, nil
		}
	}
	return w.sign(ctx, rail, r, head.Time+validFor)
}

func (w *Worker) sign(ctx context.Context, rail Rail, r Refund, validBefore uint64) (signed chain.Signed, waiting bool, err error) {
	asset, known := rail.Network.Asset(r.Payment.Asset)
	if !known {
		return chain.Signed{}, false, fmt.Errorf("sign refund %s: asset %s is not configured any more", r.Payment.Call, r.Payment.Asset)
	}
	a := r.authorization(validBefore)
	treasury := rail.Treasuries[r.Payment.Treasury]
	raw, err := treasury.SignAuthorization(chain.NewDomain(asset, rail.Network.ChainID), a)
	if err != nil {
		return chain.Signed{}, false, fmt.Errorf("sign refund %s: %w", r.Payment.Call, err)
	}
	crash.Before(crash.RefundSign)
	err = pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		return w.store.addSignature(ctx, tx, r.Payment.Call, signature{validBefore, raw})
	})
	if err != nil {
		return chain.Signed{}, false, err
	}
	crash.After(crash.RefundSign)
	return chain.Signed{Asset: r.Payment.Asset, Authorization: a, Signature: raw}, false, nil
}
