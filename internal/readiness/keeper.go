package readiness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// admitWait is how long a call may wait for the bucket. A bucket of a second's rate gives within that whatever it gives at all, unless others wait too.
const admitWait = time.Second

// Options say how a Keeper judges.
type Options struct {
	Self  uuid.UUID     // of this process, as in its row
	Limit time.Duration // a look that takes longer says nothing
	// Own are the terms of this process: what it may lose and how fast it may send. Zero: no bucket, and results are used for Fixed.
	Own   Terms
	Fixed time.Duration
	// Pace is the allowance by which looks are paced where that is longer and nothing says what may be lost; zero: by the allowance itself.
	Pace time.Duration
	// Alone is that this process has no heartbeat and no fleet.
	Alone bool
	// Limited tells from memory why nobody takes work on a network now; nil where somebody does. It is asked each time, because it ends to the second, and
	// is no news for Changed: whoever keeps it tells of it. Nil: no network is ever limited.
	Limited func(network string) error
	// Stopped tells from memory why an admin, or a difference in the books, has stopped a network; nil where nothing has. It is asked each time, and is no news for Changed. Nil: none ever is.
	Stopped func(network string) error
	// Changed hears when a network is no longer ready, with the reason, and when it is again, with nil. One that becomes ready at the start is no news.
	Changed func(network string, err error)
	Now     func() time.Time // nil: time.Now
}

// Terms are what a process may lose and how fast it may send payments to settlement, in micro-dollars, on each network.
type Terms struct {
	Budget int64 // b: what may be sent since the last proof, by all processes together
	Rate   int64 // r: a second
	Burst  int64 // c: at once; at most Rate × 1 s
	Share  int   // of the budget, in 1/10000; zero: none of its own
}

// Keeper keeps what is known of each network. Its answers are reads of memory; Refresh looks, beside the requests.
type Keeper struct {
	opts  Options
	names []string // of the networks, in order

	mu       sync.Mutex
	networks map[string]*network
	fleet    Fleet
	lastBeat time.Time // when this process was last heard of for certain; zero: never
	left     bool      // for good
	readAt   time.Time // before the newest reading of the fleet

	joined    bool
	joinAt    time.Time // in market time: every other process has seen us that has read the fleet after it; zero: we have not seen ourselves
	notBefore time.Time // what was proved earlier is another life's
}

// A network is what is known of one.
type network struct {
	name           string
	check          Check
	settle, refund result
	allowed        allowances
	bucket         *bucket // nil: nothing is counted
	words          bool    // payments on it may be believed before they are proved
	wake           chan struct{}
	looked         chan struct{} // closed when it was looked at for the first time
	told           error         // what Changed heard last
}

// New returns a keeper of these networks. It knows nothing before Refresh has looked.
func New(checks map[string]Check, opts Options) *Keeper {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	k := &Keeper{opts: opts, networks: map[string]*network{}, joined: opts.Alone || opts.Own == (Terms{})}
	for name, check := range checks {
		n := &network{name: name, check: check, wake: make(chan struct{}, 1), looked: make(chan struct{})}
		if opts.Own == (Terms{}) {
			n.allowed.now(time.Time{}, opts.Fixed)
		} else {
			n.bucket = newBucket(opts.Own.Rate, opts.Own.Burst, opts.Now())
		}
		k.networks[name], k.names = n, append(k.names, name)
	}
	slices.Sort(k.names)
	k.fleet = FleetOf(opts.Self, opts.Own, nil)
	return k
}

// Networks are the networks, in order.
func (k *Keeper) Networks() []string { return slices.Clone(k.names) }

// Ready returns why a network takes no work, a *Closed; nil where it does.
func (k *Keeper) Ready(network string) error { return k.Look(network, 0) }

// All returns every network's reason for not being ready; nil for those that are.
func (k *Keeper) All() map[string]error {
	all := map[string]error{}
	for _, name := range k.names {
		all[name] = k.Ready(name)
	}
	return all
}

// Standing returns how a network stands.
func (k *Keeper) Standing(network string) Standing {
	outside := k.outside(network)
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.standing(network)
	if outside != nil {
		s.State, s.Cause, s.Why = NotReady, outside.Cause, outside
	}
	return s
}

// Standings returns how all networks stand.
func (k *Keeper) Standings() []Standing {
	all := make([]Standing, 0, len(k.names))
	for _, name := range k.names {
		all = append(all, k.Standing(name))
	}
	return all
}

// Look returns why a call of a price in micro-dollars is not taken on a network now, a *Closed; it takes nothing.
func (k *Keeper) Look(network string, price int64) error {
	if outside := k.outside(network); outside != nil {
		return outside
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.standing(network); !s.State.Admits() {
		return k.closed(s)
	}
	n := k.networks[network]
	if no := k.tooDear(n, price); no != nil {
		return no
	}
	if n.bucket != nil {
		if wait := n.bucket.wait(k.opts.Now(), price); wait > admitWait {
			return k.spent(n, wait)
		}
	}
	return nil
}

// An Admission is what a call has taken out of the bucket. The zero one is of nothing.
type Admission struct {
	network *network
	taken   *taking
}

// Admit takes the price of a call, in micro-dollars, out of the bucket: at the moment before its authorization is shown to anybody, whatever was looked at
// before. It waits for a second at most, and says then whether the proof is still young enough. A call that is under way is neither ended by a switch nor by a
// source that takes no new work: it has its unit. Who turns out to show nothing to anybody gives it back by Return.
func (k *Keeper) Admit(ctx context.Context, network string, price int64) (Admission, error) {
	a, err := k.take(network, price)
	if err != nil || a.taken == nil {
		return a, err
	}
	for {
		wait, sooner := k.waits(a)
		if wait <= 0 {
			return k.confirm(network, a)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			k.Return(a)
			return Admission{}, ctx.Err()
		case <-timer.C:
		case <-sooner:
			timer.Stop()
		}
	}
}

// take takes a price out of the bucket, to be used when it is due.
func (k *Keeper) take(network string, price int64) (Admission, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.standing(network); !s.State.Admits() {
		return Admission{}, k.closed(s)
	}
	n := k.networks[network]
	if no := k.tooDear(n, price); no != nil {
		return Admission{}, no
	}
	if n.bucket == nil {
		return Admission{}, nil
	}
	taken, wait := n.bucket.take(k.opts.Now(), price, admitWait)
	if taken == nil {
		return Admission{}, k.spent(n, wait)
	}
	return Admission{n, taken}, nil
}

// waits is how long what was taken has to be waited for yet, and what is closed when that may have become less.
func (k *Keeper) waits(a Admission) (time.Duration, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return a.taken.due.Sub(k.opts.Now()), a.network.bucket.sooner
}

// confirm compares the age when the wait is over. What is refused then goes back into the bucket.
func (k *Keeper) confirm(network string, a Admission) (Admission, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.standing(network); !s.State.Admits() {
		k.giveBack(a)
		return Admission{}, k.closed(s)
	}
	return a, nil
}

// Return gives back what a call has taken of which nothing was shown to anybody. Without it whoever sends payments that end before they are shown, which costs
// nothing, would keep the bucket empty for everybody else.
func (k *Keeper) Return(a Admission) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.giveBack(a)
}

func (k *Keeper) giveBack(a Admission) {
	if a.taken != nil {
		a.network.bucket.give(k.opts.Now(), a.taken)
	}
}

// Proved says that a settlement or a refund succeeded whose request began at a time of this process's clock.
func (k *Keeper) Proved(network string, c Capability, began time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.networks[network]
	if n == nil || began.Before(k.notBefore) || began.After(k.opts.Now()) {
		return
	}
	switch c {
	case Settle:
		n.settle.proved(began)
	case Refund:
		n.refund.proved(began)
	}
}

// Words is what may be unproved on a network at most, in micro-dollars: as much as leaves an allowance. Zero: nothing.
func (k *Keeper) Words() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fleet.Words(k.opts.Own)
}

// Burst is the dearest call that is taken, in micro-dollars; zero: any.
func (k *Keeper) Burst() int64 { return k.opts.Own.Burst }

// Line is what the age of a proof is derived from, for the operator.
func (k *Keeper) Line() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	allowance := k.opts.Fixed
	for i, name := range k.names {
		if a := k.networks[name].allowed.last(); i == 0 || a < allowance {
			allowance = a
		}
	}
	if k.opts.Own == (Terms{}) {
		return fmt.Sprintf("b=none n=%d allowance=%s", k.fleet.N, allowance)
	}
	var line strings.Builder
	fmt.Fprintf(&line, "b=%s Σr=%s n=%d allowance=%s Σc=%s", usd(k.fleet.Budget), usd(k.fleet.Rates), k.fleet.N, allowance.Truncate(time.Millisecond), usd(k.fleet.Bursts))
	if s := k.opts.Own.Share; s > 0 {
		fmt.Fprintf(&line, " s=%s r=%s c=%s", usd(int64(s)*100), usd(k.opts.Own.Rate), usd(k.opts.Own.Burst))
	}
	return line.String()
}

// outside is why somebody else lets no work in, by a switch or because a source is out. They are asked without our lock.
func (k *Keeper) outside(network string) *Closed {
	for _, ask := range []struct {
		why   func(string) error
		cause Cause
	}{{k.opts.Stopped, CauseStopped}, {k.opts.Limited, CauseLimited}} {
		if ask.why == nil {
			continue
		}
		if err := ask.why(network); err != nil {
			return &Closed{Network: network, Cause: ask.cause, Why: err}
		}
	}
	return nil
}

// standing is how a network stands by what is known here. The lock is held.
func (k *Keeper) standing(name string) Standing {
	s := Standing{Network: name, State: NotReady}
	n := k.networks[name]
	if n == nil {
		s.Cause, s.Why = CauseUnknown, fmt.Errorf("network %s is not checked", name)
		return s
	}
	now := k.opts.Now()
	judge := func(r result) Proof {
		// The fleet counts from the proof on: a reading from before it says nothing more than the ones after.
		return r.judge(now, k.usedFrom(n, r), n.allowed.since(r.good))
	}
	s.Settle, s.Refund = judge(n.settle), judge(n.refund)
	s.Allowance = n.allowed.last()
	if !n.settle.good.IsZero() && !n.refund.good.IsZero() {
		s.Allowance = min(n.allowed.since(n.settle.good), n.allowed.since(n.refund.good))
	}
	switch {
	case k.noDatabase(now):
		s.Cause, s.Why = CauseNoDatabase, errNoDatabase
	case !k.joined:
		s.Cause, s.Why = CauseJoining, errJoining
	default:
		worst, of := s.Settle, Settle
		if worse(s.Refund, worst) {
			worst, of = s.Refund, Refund
		}
		s.State, s.Cause = worst.State, worst.Cause
		if s.State != Ready {
			s.Why = whyOf(of, worst, s.Allowance)
		}
	}
	return s
}

// usedFrom is when the use of a proof begins to count. Where payments are believed before they are proved it is no later than the newest reading of what is
// unproved: nobody has counted those that were believed since.
func (k *Keeper) usedFrom(n *network, r result) time.Time {
	if n.words && k.readAt.Before(r.good) {
		return k.readAt
	}
	return r.good
}

// noDatabase says whether the others may count this process as dead: then it has to be still, because they send without regard to it. Where nobody was told
// what may be lost nobody counts, and what is known is used for as long as everything else that is.
func (k *Keeper) noDatabase(now time.Time) bool {
	patience := AliveFor
	if k.opts.Own == (Terms{}) {
		patience = max(patience, k.opts.Fixed)
	}
	return !k.opts.Alone && (k.left || k.lastBeat.IsZero() || elapsed(k.lastBeat, now) >= patience)
}

func (k *Keeper) closed(s Standing) *Closed {
	return &Closed{Network: s.Network, Cause: s.Cause, Why: s.Why}
}

func (k *Keeper) tooDear(n *network, price int64) error {
	if n.bucket == nil || price <= n.bucket.burst {
		return nil
	}
	return &Closed{Network: n.name, Cause: CauseTooDear, Why: fmt.Errorf("a call of %s USD is dearer than the %s USD that are sent to settlement at once (MARKET_ADMIT_BURST_USD)",
		usd(price), usd(n.bucket.burst))}
}

func (k *Keeper) spent(n *network, wait time.Duration) error {
	return &Closed{Network: n.name, Cause: CauseSpent, Wait: wait, Why: fmt.Errorf("more than %s USD a second would be sent to settlement (MARKET_ADMIT_USD_PER_SECOND)", usd(n.bucket.rate))}
}

// worse says whether one capability stands worse than the other.
func worse(a, b Proof) bool {
	if a.State != b.State {
		return a.State > b.State
	}
	if a.Cause != b.Cause {
		return a.Cause < b.Cause
	}
	return a.Age > b.Age
}

// pause is a random point of 20 to 40 % of how long a proof may be used, so that processes do not look at the same time.
func pause(allowance time.Duration) time.Duration {
	if allowance <= 0 {
		return lookMax // nothing that a look finds is of use before the fleet changes, which wakes us
	}
	return min(lookMax, max(lookMin, time.Duration((0.2+0.2*rand.Float64())*float64(allowance)))) //nolint:gosec // no secret
}
