package delivery

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/refusal"
	"market/internal/siwx"
)

// trialLimits are what an endpoint gives away in a UTC day: to everybody together, and of that to one network, and to one wallet.
type trialLimits struct{ perDay, perCaller int }

// trialLimitsOf are those of a listed endpoint as its provider and the plan of its owner have them now: what is less holds. They are worked out anew
// for each call, so that another plan holds from the next one on.
func (p *Path) trialLimitsOf(s *catalog.Service, e *catalog.Endpoint) trialLimits {
	l := trialLimits{perDay: p.limitsOf(s).TrialCalls(e.TrialCallsPerDay)}
	l.perCaller = l.perDay
	if e.TrialCallsPerCaller > 0 {
		l.perCaller = min(l.perCaller, e.TrialCallsPerCaller)
	}
	return l
}

// A trialLimit is one of the three by which a trial call can be one too many.
type trialLimit int

const (
	_ trialLimit = iota
	limitOfDay
	limitOfNetwork
	limitOfWallet
)

// A trialUse is what was used of a day's trial calls: by everybody, by the caller's network and by its wallet.
type trialUse struct{ day, network, wallet int }

// left is what the caller may still use.
func (l trialLimits) left(u trialUse) int {
	return max(0, min(l.perDay-u.day, l.perCaller-u.network, l.perCaller-u.wallet))
}

// reached is the first limit that leaves nothing, and what it is. Where several do, it is the one of the most callers.
func (l trialLimits) reached(u trialUse) (trialLimit, int) {
	switch {
	case u.day < l.perDay && u.network >= l.perCaller:
		return limitOfNetwork, l.perCaller
	case u.day < l.perDay && u.wallet >= l.perCaller:
		return limitOfWallet, l.perCaller
	}
	return limitOfDay, l.perDay
}

// A trialCaller is whom a trial call is counted for.
type trialCaller struct {
	network netip.Prefix
	wallet  common.Address // zero: it did not sign in
}

func trialCallerOf(r Request) trialCaller {
	return trialCaller{network: call.Network(r.Source), wallet: r.wallet}
}

// A takenTrial is a trial call that was taken, or why there was none to take, and what is left after it.
type takenTrial struct {
	standing
	taken bool
	use   trialUse
	left  int // for the caller
}

// tried says in an answer what is left of a day's trial calls.
func (a Answer) tried(t takenTrial) Answer {
	if t.askedAt.IsZero() {
		return a
	}
	a.TrialLeft = &t.left
	return a
}

// trialOffered refuses a trial of an endpoint that has none, and returns how many there are elsewhere.
func (p *Path) trialOffered(r Request) (trialLimits, *refusal.Error) {
	if no := p.listed(r.Target); no != nil {
		return trialLimits{}, no
	}
	if r.Target.Endpoint.TrialCallsPerDay == 0 {
		return trialLimits{}, refusal.New(call.NotFound, "this endpoint offers no trial calls")
	}
	l := p.trialLimitsOf(r.Target.Service, r.Target.Endpoint)
	if l.perDay == 0 {
		return trialLimits{}, refusal.New(call.NotFound, "this endpoint offers no trial calls: the plan of its provider has none")
	}
	return l, nil
}

// trialSignIn reads who a trial call is signed in as; the zero proof where it carries no sign-in. One that does not hold is refused and not passed over:
// its caller would believe that it is counted as somebody.
func (p *Path) trialSignIn(r Request) (siwx.Proof, *refusal.Error) {
	header, signed, err := siwx.FromHeaders(r.Header)
	if err != nil || !signed {
		return siwx.Proof{}, optional(err)
	}
	proof, err := siwx.Verify(header, p.SignIn, p.Now())
	return proof, optional(err)
}

// useSignIn uses the sign-in of a trial call up, or refuses one that was used before.
func (p *Path) useSignIn(ctx context.Context, proof siwx.Proof) *refusal.Error {
	if proof == (siwx.Proof{}) {
		return nil
	}
	own, cancel := detached(ctx, writeTime)
	defer cancel()
	first, err := siwx.Store{}.UseOnce(own, p.DB, proof)
	switch {
	case err != nil:
		return asRefusal(err)
	case !first:
		return asRefusal(siwx.Used())
	}
	return nil
}

// provoked refuses trials to a network whose trials of the endpoint failed too often: what costs nothing must not be the way to strike a service. Our
// own calls and the provider's move nothing, however they end.
func (p *Path) provoked(ctx context.Context, r Request) *refusal.Error {
	if !p.originOf(r).Counts() {
		return nil
	}
	rest, err := p.Refunds.trialRest(ctx, p.DB, r.Target.Service.ID, r.Target.Endpoint.ID, r.Source)
	if err != nil {
		return refusal.New(call.Internal, "").WithCause(err)
	}
	if rest > 0 {
		return refusal.New(call.RefundLimit, "too many trial calls of this endpoint from your network failed").WithUntil(p.Now().Add(rest))
	}
	return nil
}

// takeTrial takes one of today's trial calls for its caller. With a refusal it returns what it found, too.
func (p *Path) takeTrial(ctx context.Context, r Request, l trialLimits) (takenTrial, *refusal.Error) {
	own, cancel := detached(ctx, writeTime)
	defer cancel()
	who := trialCallerOf(r)
	t, err := takeTrial(own, p.DB, r.Target.Service.ID, r.Target.Endpoint.ID, l, who)
	if err != nil {
		return takenTrial{}, refusal.New(call.Internal, "").WithCause(err)
	}
	if t.taken || resting(t.standing) != nil {
		return t, nil
	}
	resets := resetOf(t.askedAt)
	limit, n := l.reached(t.use)
	return t, refusal.New(call.TrialExhausted, "no trial call is left today: %s %d a day, and there are new ones from %s on", limit.whose(who), n,
		resets.Format(time.RFC3339)).WithUntil(p.Now().Add(resets.Sub(t.askedAt)))
}

// whose names who has no trial call left.
func (l trialLimit) whose(who trialCaller) string {
	switch l {
	case limitOfNetwork:
		return fmt.Sprintf("your network %s has", who.network)
	case limitOfWallet:
		return fmt.Sprintf("your wallet %s has", who.wallet)
	case limitOfDay:
	}
	return "all callers together have"
}

// resetOf is when the day of an instant ends: its allowances are UTC's.
func resetOf(at time.Time) time.Time {
	return at.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
}

// giveTrialBack undoes takeTrial for a call whose service was not asked, and returns what is left then. Where that fails, there is one trial less today.
func (p *Path) giveTrialBack(ctx context.Context, r Request, t takenTrial) takenTrial {
	own, cancel := detached(ctx, writeTime)
	defer cancel()
	if err := giveTrialBack(own, p.DB, r.Target.Endpoint.ID, t.askedAt, trialCallerOf(r)); err != nil {
		p.OnError(err)
		return t
	}
	t.left++
	return t
}

// Trials are an endpoint's trial calls of today.
type Trials struct {
	PerDay, PerCaller int
	Left              int // for everybody together
	LeftForYou        int // for the network that asks
	ResetsAt          time.Time
}

// Trials returns what the endpoints of a service have left to try today, for the network of an address, by endpoint. Those that offer none are left out,
// and so are all of a service that is not on the shelf.
func (p *Path) Trials(ctx context.Context, s *catalog.Service, from netip.Addr) (map[uuid.UUID]Trials, error) {
	limits := map[uuid.UUID]trialLimits{}
	for _, e := range s.Endpoints {
		if l := p.trialLimitsOf(s, e); s.State == catalog.Listed && !e.Retired && l.perDay > 0 {
			limits[e.ID] = l
		}
	}
	if len(limits) == 0 {
		return nil, nil
	}
	uses, now, err := trialsUsed(ctx, p.DB, limits, call.Network(from))
	if err != nil {
		return nil, err
	}
	trials := make(map[uuid.UUID]Trials, len(limits))
	for id, l := range limits {
		u := uses[id]
		trials[id] = Trials{PerDay: l.perDay, PerCaller: l.perCaller, Left: max(0, l.perDay-u.day), LeftForYou: l.left(u), ResetsAt: resetOf(now)}
	}
	return trials, nil
}

// TrialsOffered is how many trial calls a day an endpoint has as things stand: what its listing says, as far as the plan of its owner goes.
func (p *Path) TrialsOffered(s *catalog.Service, e *catalog.Endpoint) (perDay, perCaller int) {
	l := p.trialLimitsOf(s, e)
	return l.perDay, l.perCaller
}
