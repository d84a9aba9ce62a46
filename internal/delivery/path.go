package delivery

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/answer"
	"market/internal/capacity"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/cooldown"
	"market/internal/identity"
	"market/internal/payment"
	"market/internal/plan"
	"market/internal/readiness"
	"market/internal/replica"
	"market/internal/siwx"
	"market/internal/upstream"
)

const (
	// settleTime is how long a settlement may take until it counts as unclear. It ends well before the lease of a settling call.
	settleTime  = 18 * time.Second
	settleLease = 30 * time.Second
	// admitTime is more than a call may wait for what may be lost at once.
	admitTime = 2 * time.Second
	// askGrace is what a lease adds to the endpoint's timeout while the service is being asked: for recordTime, and for the 4 s that a call may wait for its turn.
	askGrace = 30 * time.Second
	// writeTime bounds a commit with its retries, recordTime the one that ends a call: failures of one service wait for each other there.
	writeTime  = 10 * time.Second
	recordTime = 25 * time.Second
	// pendingRetry is what a caller is told to wait before it sends the same payment again.
	pendingRetry = 5 * time.Second
	readyRetry   = 5 * time.Second
	// awayRetry is what a caller is told to wait for a service that an admin took off the shelf for now.
	awayRetry = time.Hour
	// brokenRetry is what it is told to wait for a service whose listing cannot be used: a key that comes back is seen within that.
	brokenRetry = time.Minute
	// placeTime is how long a call that is paid waits for a place at its service until its caller is told to come again.
	placeTime = 5 * time.Second
)

// A Settler puts a caller's authorization on the chain and says what became of it: a facilitator.
type Settler interface {
	Settle(ctx context.Context, s chain.Signed) chain.Settlement
}

// A Node reads what admit and settle have to know of one network.
type Node interface {
	Head(ctx context.Context) (chain.Head, error)
	Account(ctx context.Context, asset, owner common.Address, nonce common.Hash) (chain.AccountState, error)
	Simulate(ctx context.Context, from common.Address, gas uint64, s chain.Signed) error
	Used(ctx context.Context, asset, authorizer common.Address, nonces []common.Hash) ([]bool, error)
	Takes(ctx context.Context, wallet common.Address, digest common.Hash, s chain.Signature) (bool, error)
}

// A Rail is one network on which calls are paid.
type Rail struct {
	Network  chain.Network
	Node     Node
	Chain    Chain
	Settler  Settler
	Units    Units            // nil: nothing is counted, as with our own engine
	Words    Words            // nil: every payment is proved before the service is asked
	Treasury common.Address   // receives the payments, and gives them back
	Ours     []common.Address // every wallet of this market on it: none of them is a caller
	Gas      common.Address   // in whose name a transfer is simulated: who will send it, where that is known
}

// Config is what a Path is built from.
type Config struct {
	Owner    uuid.UUID // this process, as owner of the calls that it walks; zero: a new one
	DB       *pgxpool.Pool
	Recorder *Recorder
	Catalog  *catalog.Catalog
	Upstream *upstream.Client
	Prober   *upstream.Prober
	Board    *cooldown.Board
	Ready    *readiness.Keeper
	Rails    []Rail // in the order in which they are offered
	Now      func() time.Time

	PublicURL     string // without a trailing slash
	QuoteValidity time.Duration
	Notary        payment.Notary // signs for the wallets that payments go to
	Refunds       RefundPolicy
	Answers       answer.Store
	SignIn        siwx.Expect // who we are to a caller that signs in
	Streams       StreamLimits
	Grace         time.Duration // in which a retry of a payment that was settled and not asked is still served
	// RestoredAt is when a backup was restored; zero: none was. Transfers that are older and have no claim go to review.
	RestoredAt time.Time
	// Plans are what those of owners promise, and what holds where a service has no owner; PlanOf names the plan that an account has now, from memory
	// alone. nil: no account has one.
	Plans  plan.Terms
	PlanOf func(account uuid.UUID) string
	// OnError hears of what went wrong and changed no answer; it must not block.
	OnError func(err error)
	// OnFullRound hears that in a round it was the turn of as many services as one process asks; nil: nobody does.
	OnFullRound func()
	// Own are the addresses of our own scanners and monitoring.
	Own []netip.Prefix
	// OwnerOf returns what is known of an account that owns listings, as identity.Board does; nil: nothing. It reads memory alone: it is asked on the way
	// of every call.
	OwnerOf func(account uuid.UUID) (identity.Owner, bool)
	// Scanner says whether a token is the key of one of our own scanners, as identity.Board does; nil: none is. It reads memory alone.
	Scanner func(token string, now time.Time) bool
}

// Path is the paid path and the trial path.
type Path struct {
	Config
	owner    uuid.UUID // this process, as owner of the calls it walks
	gate     *capacity.Gate
	streams  streams
	payments payment.Store
	quotes   atomic.Pointer[quotes]
	claiming claiming
	tries    tries
	resends  chan struct{} // of payments that a facilitator said it had settled
	weighing chan struct{} // words of facilitators
	unseen   sync.Map      // of facilitators, by name, of which was said that our node does not see what they settled
	walking  sync.WaitGroup
	unshown  atomic.Int64 // calls that may yet show an authorization
	// streaming ends when the program can wait for streams no longer.
	streaming  context.Context
	endStreams context.CancelFunc
}

// NewPath returns a path that owns the calls it walks under an id of its own. Whoever says under that id that the process is alive tells its
// gate who else is.
func NewPath(c Config) *Path {
	owner := c.Owner
	if owner == uuid.Nil {
		owner = uuid.Must(uuid.NewV7())
	}
	p := &Path{Config: c, owner: owner, gate: capacity.NewGate(owner, replica.AliveFor, time.Now), resends: make(chan struct{}, wordResends),
		weighing: make(chan struct{}, wordsAtOnce)}
	p.streaming, p.endStreams = context.WithCancel(context.Background())
	return p
}

// Owner is the id under which this process holds leases.
func (p *Path) Owner() uuid.UUID { return p.owner }

// Unshown is how many calls are under way that may yet show an authorization.
func (p *Path) Unshown() int64 { return p.unshown.Load() }

// Gate lets calls in to services, as far as their providers say that they can take them.
func (p *Path) Gate() *capacity.Gate { return p.gate }

// Drain waits until no call is being walked, or until ctx ends. The door has stopped taking requests before.
func (p *Path) Drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() { p.walking.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Path) rail(network string) (Rail, bool) {
	for _, r := range p.Rails {
		if r.Network.ID == network {
			return r, true
		}
	}
	return Rail{}, false
}

func (p *Path) networks() []chain.Network {
	networks := make([]chain.Network, len(p.Rails))
	for i, r := range p.Rails {
		networks[i] = r.Network
	}
	return networks
}

// detached returns a context that outlives the caller's request, with a deadline of its own.
func detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
