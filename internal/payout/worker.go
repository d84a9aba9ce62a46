package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"market/internal/chain"
	"market/internal/jobs"
	"market/internal/source"
)

const (
	// validFor is how long a signed payout may be sent; after it has lapsed another may be signed.
	validFor = 10 * 60 // seconds
	// validMargin is the life that a signature must have left to be sent once more.
	validMargin = 60 // seconds

	// searchBefore is how many blocks below the head at which it was signed a payout is looked for: more than a chain takes back.
	searchBefore = 2_000

	blockWait  = time.Second // until looking again for depth
	heldWait   = 15 * time.Second
	parkedWait = 10 * time.Minute
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

// Units are what is counted of what a rail's senders are shown. Every error of theirs that says that they take no work is a *source.LimitError.
type Units interface {
	// Reserve sets a unit aside for one payout. end gives it back where it was not used; Sender.Settle uses it in the context.
	Reserve(ctx context.Context) (sending context.Context, end func(), err error)
}

// Funds say whether a treasury has what it owes.
type Funds interface {
	// Short says whether a treasury holds less of an asset than it owes to callers and providers.
	Short(ctx context.Context, asset, treasury common.Address) (bool, error)
}

// A Rail is what pays out on one network.
type Rail struct {
	Network    chain.Network
	Node       Node
	Sender     Sender
	Funds      Funds                        // nil: nobody is asked whether there is enough
	Units      Units                        // nil: what the sender is shown is not counted, as with our own engine
	Treasuries map[common.Address]chain.Key // today's, and those that it replaced: what a treasury received it pays out
	Ours       []common.Address             // wallets that nobody is paid to
}

// Args names the payout that a job works on.
type Args struct {
	Payout uuid.UUID `json:"payout"`
}

// Kind is the job's name in the queue.
func (Args) Kind() string { return "payout" }

// Queue is where payouts wait: one that hangs holds up no refund.
const Queue = "payouts"

// AtOnce is how many payouts one replica works on; each waits for a block.
const AtOnce = 10

// InsertOpts keeps one live job a payout, and no retry by the queue: when a payout is tried again is next_at of its row.
func (Args) InsertOpts() river.InsertOpts { return jobs.OneLive(Queue) }

// A Teller tells a provider what became of a payout, which has arrived or is parked, in the transaction that has it so.
type Teller func(ctx context.Context, tx pgx.Tx, p Payout) error

// Worker takes one payout one step further: signs, sends, confirms. Each step reads the chain first, so running it twice, or on two replicas at once, changes
// nothing.
type Worker struct {
	river.WorkerDefaults[Args]
	db    *pgxpool.Pool
	store Store
	rails map[string]Rail // by CAIP-2 id
	tell  Teller
}

// NewWorker returns the worker. tell may be nil: nobody is told.
func NewWorker(db *pgxpool.Pool, rails map[string]Rail, tell Teller) *Worker {
	return &Worker{db: db, rails: rails, tell: tell}
}

// Timeout covers one send and the reads around it.
func (*Worker) Timeout(*river.Job[Args]) time.Duration { return sendTime + 40*time.Second }

// Work takes the payout of the job one step further. An error is for the log; the next attempt is on the row already.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	id := job.Args.Payout
	p, err := w.store.Find(ctx, w.db, id)
	if errors.Is(err, ErrNone) || err == nil && (p.Ended() || p.Waiting) {
		return nil // a job that was queued before its payout was put off has nothing to do
	}
	if err != nil {
		return err
	}
	next, err := w.step(ctx, p)
	if err == nil {
		return pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error { return w.keep(ctx, tx, id, next) })
	}
	// The row is put off on a context of its own: the job's may be what ended the step.
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	limit, out := errors.AsType[*source.LimitError](err)
	wait := retryAfter(p.Attempts)
	if _, asked := errors.AsType[*askedError](err); asked && out && limit.Why == source.Paced {
		// It has cost a unit, and the next may be answered the same: so it backs off by itself.
		wait, out = max(wait, limit.Wait), false
	}
	if out {
		// It is known why nothing is sent, and until when: no error, and no attempt.
		return w.store.waitFor(own, w.db, id, limit)
	}
	return errors.Join(err, w.store.later(own, w.db, id, "", wait, 1, "the chain could not be read or written"))
}

// keep writes what a step found. Of a payout that has arrived, and once of one that is parked, its provider is told with it.
func (w *Worker) keep(ctx context.Context, tx pgx.Tx, id uuid.UUID, found verdict) (err error) {
	news := false
	if found.proof != nil {
		news, err = w.store.confirm(ctx, tx, id, *found.proof)
	} else if err = w.store.later(ctx, tx, id, found.state, found.wait, 0, found.why); err == nil && found.state == StateParked {
		news, err = w.store.parkedIsNews(ctx, tx, id)
	}
	if err != nil || !news || w.tell == nil {
		return err
	}
	p, err := w.store.Find(ctx, tx, id)
	if err != nil {
		return err
	}
	return w.tell(ctx, tx, p)
}

// retryAfter doubles from retryMin to retryMax over the attempts that went wrong.
func retryAfter(attempts int) time.Duration {
	if attempts > 6 {
		return retryMax
	}
	return min(retryMax, retryMin<<attempts)
}

// A verdict is what one step found: a proof, or the state to wait in (empty: the one that it has) and how long.
type verdict struct {
	proof *chain.Proof
	state State
	wait  time.Duration
	why   string
}

func (w *Worker) step(ctx context.Context, p Payout) (verdict, error) {
	rail, known := w.rails[p.Network]
	if _, have := rail.Treasuries[p.Treasury]; !known || !have {
		return verdict{state: StateParked, wait: parkedWait, why: "this program does not hold the key of the treasury that has the money"}, nil
	}
	var used bool
	var next verdict
	// One node has to say both that the nonce is used and where: another one may not have come that far.
	err := chain.OneView(ctx, func(ctx context.Context) error {
		var err error
		if used, err = rail.Node.AuthorizationUsed(ctx, p.Asset, p.Treasury, p.Nonce); err != nil {
			return fmt.Errorf("read authorization of payout %s: %w", p.ID, err)
		}
		if used {
			next, err = w.confirmable(ctx, rail, p)
		}
		return err
	})
	if err != nil || used {
		return next, err
	}
	return w.send(ctx, rail, p)
}

// confirmable looks for the log of a payout whose nonce is used.
func (w *Worker) confirmable(ctx context.Context, rail Rail, p Payout) (verdict, error) {
	last, err := w.store.lastSigned(ctx, w.db, p.ID)
	if err != nil {
		return verdict{}, err
	}
	// All that was signed before the last one has lapsed. Without any it was signed before a backup was restored, and may have left since its newest payment.
	from := p.FromBlock
	if last != nil {
		from = max(from, last.fromBlock)
	}
	proof, found, err := rail.Node.FindSettlement(ctx, p.expect(), from)
	if err != nil {
		return verdict{}, fmt.Errorf("find transfer of payout %s: %w", p.ID, err)
	}
	if !found {
		return verdict{state: StateParked, wait: parkedWait, why: "its nonce is used, and not by this payout"}, nil
	}
	proof, depth, found, err := rail.Node.Locate(ctx, p.expect(), proof.Transaction)
	if err != nil {
		return verdict{}, fmt.Errorf("locate transfer of payout %s: %w", p.ID, err)
	}
	if !found || depth < rail.Network.Confirmations {
		return verdict{state: StateSent, wait: blockWait, why: whyFinal}, nil
	}
	return verdict{proof: &proof}, nil
}

const whyShort = "the treasury holds less than it owes; this one is paid as soon as it holds enough"

const whyFinal = "waiting for the payout to be final"

// send shows a signed authorization to the chain: the one that is still valid, or a new one once all before it have lapsed.
func (w *Worker) send(ctx context.Context, rail Rail, p Payout) (verdict, error) {
	last, err := w.store.lastSigned(ctx, w.db, p.ID)
	if err != nil {
		return verdict{}, err
	}
	if why := p.stops(); why != "" && last == nil {
		return verdict{wait: heldWait, why: why}, nil // the usual case of what is held; with the row locked it is asked again below
	}
	m, waiting, err := w.intend(ctx, rail, p, last)
	if err != nil {
		return verdict{}, err
	}
	if waiting {
		return verdict{wait: blockWait, why: "waiting for an earlier signature to lapse"}, nil
	}
	if m.sign != nil && rail.Funds != nil {
		// Callers come first, and of providers no one is paid by what another one has earned.
		short, err := rail.Funds.Short(ctx, p.Asset, p.Treasury)
		if err != nil {
			return verdict{}, fmt.Errorf("read what treasury %s holds for payout %s: %w", p.Treasury, p.ID, err)
		}
		if short {
			return verdict{state: StateParked, wait: parkedWait, why: whyShort}, nil
		}
	}
	// Before anything is signed: a signature lives for minutes, and a source may be out for days.
	sending, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if rail.Units != nil {
		var end func()
		if sending, end, err = rail.Units.Reserve(sending); err != nil {
			return verdict{}, fmt.Errorf("set a unit aside for payout %s: %w", p.ID, err)
		}
		defer end()
	}
	var why string
	err = pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) (err error) {
		why, err = w.store.admit(ctx, tx, p.ID, m)
		return err
	})
	if err != nil {
		return verdict{}, err
	}
	if why != "" {
		return verdict{wait: heldWait, why: why}, nil
	}
	shown := last
	if m.sign != nil {
		shown = m.sign
	}
	return verdictOf(p, rail.Sender.Settle(sending, chain.Signed{Asset: p.Asset, Authorization: p.authorization(shown.to, shown.validBefore), Signature: shown.bytes}))
}

// verdictOf is what an answer means. One that is unclear leaves the payout sent: the chain is read before it is sent again, and takes it once.
func verdictOf(p Payout, s chain.Settlement) (verdict, error) {
	if s.Status == chain.StatusUnknown && s.Transaction == (common.Hash{}) && s.Err != nil {
		// Nobody says that it is on its way, so it is sent again; not every second, because a facilitator may count what it is asked.
		return verdict{}, &askedError{fmt.Errorf("send payout %s: %w", p.ID, s.Err)}
	}
	switch s.Status {
	case chain.StatusSettled, chain.StatusUnknown:
		return verdict{state: StateSent, wait: blockWait, why: whyFinal}, nil
	case chain.StatusReleased, chain.StatusRejected:
		// The payer is our own treasury here; a blocklisted one may be the recipient.
		if revert, ok := errors.AsType[*chain.Revert](s.Err); s.PayerFault || ok && revert.Kind == chain.RevertBlocked {
			return verdict{state: StateParked, wait: parkedWait, why: "the token refused it: " + s.Why}, nil
		}
		return verdict{}, errors.Join(fmt.Errorf("send payout %s: %s", p.ID, s.Why), s.Err)
	}
	return verdict{}, fmt.Errorf("send payout %s: settlement without a status", p.ID)
}

// An askedError is of a payout that was, or may have been, shown to somebody.
type askedError struct{ error }

func (e *askedError) Unwrap() error { return e.error }

// intend finds out what may be shown: what was signed and lives, or a new authorization. waiting means that an earlier one neither lives nor is proved lapsed.
// The first one pays to the address that the payout was made with. One after a proof of lapse pays to where the account is paid by now, so a provider whose
// address the token has blocked is paid by giving another.
func (w *Worker) intend(ctx context.Context, rail Rail, p Payout, last *signature) (m mark, waiting bool, err error) {
	head, err := rail.Node.FreshHead(ctx)
	if err != nil {
		return mark{}, false, fmt.Errorf("read head for payout %s: %w", p.ID, err)
	}
	to := p.Address
	if last != nil {
		m.lapsed = last.validBefore
		if last.validBefore >= head.Time+validMargin {
			m.alive = true
			return m, false, nil
		}
		lapsed, err := rail.Node.LapsedAt(ctx, p.Asset, p.Treasury, p.Nonce, last.validBefore, rail.Network.Confirmations)
		if err != nil {
			return mark{}, false, fmt.Errorf("prove lapse for payout %s: %w", p.ID, err)
		}
		if !lapsed {
			return mark{}, true, nil
		}
		now, err := w.store.effective(ctx, w.db, p.Account, p.Network)
		if err != nil {
			return mark{}, false, err
		}
		if !Ours(now, p.Asset, rail.Ours) {
			to = now
		}
	}
	signed, err := sign(rail, p, to, head)
	if err != nil {
		return mark{}, false, err
	}
	m.sign = &signed
	return m, false, nil
}

func sign(rail Rail, p Payout, to common.Address, head chain.Head) (signature, error) {
	validBefore := head.Time + validFor
	asset, known := rail.Network.Asset(p.Asset)
	if !known {
		return signature{}, fmt.Errorf("sign payout %s: asset %s is not configured any more", p.ID, p.Asset)
	}
	raw, err := rail.Treasuries[p.Treasury].SignAuthorization(chain.NewDomain(asset, rail.Network.ChainID), p.authorization(to, validBefore))
	if err != nil {
		return signature{}, fmt.Errorf("sign payout %s: %w", p.ID, err)
	}
	return signature{validBefore, head.Number - min(head.Number, searchBefore), to, raw}, nil
}
