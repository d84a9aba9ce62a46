package delivery

import (
	"context"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/refusal"
)

const (
	// brokeMax is how many payments of a day may find that their money was gone when they came to the chain: each costs a transaction. It happens to honest payers who also pay elsewhere.
	brokeMax = 8
	// trustMax is how many open payments a known payer has before its balance is read like a stranger's.
	trustMax = 8
	// codeOpenMax is how many open payments an account with code may have: it may take all of them back, whatever it holds.
	codeOpenMax = 16
	// noncesMax is how many open payments, the oldest first, are looked up on the chain where the balance seems short.
	noncesMax = 4 * chain.UsedMax
)

// claiming are the payments of this process between the look at their payer's means and their claim. Of many that come at once none is in the
// database yet, so those that came before count here.
type claiming struct {
	mu sync.Mutex
	of map[payment.Identity][]payment.Open // by payer, without a nonce; in the order in which they came
}

// begin adds a payment and returns those of the same payer that came before it and are not claimed or refused yet. They are looked at before the
// database is, which has all that ended.
func (c *claiming) begin(i payment.Identity, o payment.Open) (before []payment.Open, end func()) {
	i.Nonce = common.Hash{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[payment.Identity][]payment.Open{}
	}
	before = slices.Clone(c.of[i])
	c.of[i] = append(c.of[i], o)
	return before, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		at := slices.IndexFunc(c.of[i], func(other payment.Open) bool { return other.Nonce == o.Nonce })
		if c.of[i] = slices.Delete(c.of[i], at, at+1); len(c.of[i]) == 0 {
			delete(c.of, i)
		}
	}
}

// merge returns the open payments beside the one with this nonce, each once.
func merge(nonce common.Hash, lists ...[]payment.Open) []payment.Open {
	seen := map[common.Hash]bool{nonce: true}
	var all []payment.Open
	for _, o := range slices.Concat(lists...) {
		if !seen[o.Nonce] {
			seen[o.Nonce] = true
			all = append(all, o)
		}
	}
	return all
}

// means refuses a payer that cannot pay, or that provokes failures: an empty wallet should cost neither a claim nor a settlement. A known payer
// with few open payments is not looked up on the chain. before are those that were sent to this process before this one.
func (p *Path) means(ctx context.Context, r Request, paid *admitted, before []payment.Open) *refusal.Error {
	s := paid.signed
	rest, err := p.Refunds.refundRest(ctx, p.DB, s.From, r.Target.Endpoint.ID)
	if err != nil {
		return refusal.New(call.Internal, "").WithCause(err)
	}
	if rest > 0 {
		return refusal.New(call.RefundLimit, "too many of this payer's calls to this endpoint ended refunded").WithUntil(p.Now().Add(rest))
	}
	payer, err := p.payments.Payer(ctx, p.DB, paid.identity())
	open := merge(s.Nonce, payer.Open, before)
	switch {
	case err != nil:
		return refusal.New(call.Internal, "").WithCause(err)
	case payer.Undone >= payment.UndoneMax:
		return refusal.New(call.PaymentInvalid, "the code of the payer's account took %d payments of the last day when they were simulated, and not on the chain",
			payer.Undone).WithCause(payment.CodeFailed)
	case payer.Broke >= brokeMax:
		return refusal.New(call.PayerUnfunded, "%d payments of the last day found too little in the payer's account when they came to the chain; "+
			"its payments are taken again a day after they were made", payer.Broke).WithCause(payment.CodeFunds)
	case payer.Undone > 0 && payer.Undone+len(open) >= payment.UndoneMax:
		return p.wait()
	case payer.Known && !paid.simulated && len(open) <= trustMax:
		return nil
	}
	account := paid.account
	if account == nil {
		read, err := paid.rail.Node.Account(ctx, s.Asset, s.From, s.Nonce)
		if err != nil {
			return p.closed(err)
		}
		account = &read
	}
	switch {
	case account.NonceUsed:
		// It may be used by the very transfer that pays us: the settlement looks for its log.
		return nil
	case account.Balance.Cmp(s.Value) < 0:
		return unfunded()
	case account.HasCode && len(open) >= codeOpenMax:
		return p.wait()
	}
	if no := p.covered(ctx, paid, *account, open); no != nil {
		return no
	}
	if account.HasCode && !paid.simulated {
		// A key that delegated to code (EIP-7702): the token asks the code, and no longer the key.
		return p.simulate(ctx, paid)
	}
	return nil
}

// covered refuses a payment whose payer holds less than it and its open ones take together: of many that each would go through alone, the chain
// would undo the rest. An open payment whose transfer is on the chain has left the balance already, so where the balance seems short, the chain
// is asked which have.
func (p *Path) covered(ctx context.Context, paid *admitted, account chain.AccountState, open []payment.Open) *refusal.Error {
	need := paid.signed.Value
	for _, o := range open {
		need = need.Add(o.Amount)
	}
	if account.Balance.Cmp(need) >= 0 {
		return nil
	}
	var enough bool
	err := chain.OneView(ctx, func(ctx context.Context) (err error) {
		enough, err = holds(ctx, paid, need, open)
		return err
	})
	switch {
	case err != nil:
		return p.closed(err)
	case enough:
		return nil
	case len(open) > noncesMax:
		return p.wait()
	}
	return refusal.New(call.PayerUnfunded, "the payer holds less than this payment and its %d open ones take together; this one was not used", len(open)).
		WithCause(payment.CodeFunds)
}

// holds says whether what a payer has and what its open payments have moved already are enough. One node says both: with the balance of one that has seen a
// transfer and the nonces of one that has not, it would be missing from both, and the other way round it would count twice. The balance is read first:
// what moves meanwhile then counts for the payer, and nobody who has enough is refused.
func holds(ctx context.Context, paid *admitted, need money.Amount, open []payment.Open) (bool, error) {
	s := paid.signed
	account, err := paid.rail.Node.Account(ctx, s.Asset, s.From, s.Nonce)
	if err != nil {
		return false, err
	}
	have := account.Balance
	if account.NonceUsed || have.Cmp(need) >= 0 {
		return true, nil
	}
	for part := range slices.Chunk(open[:min(len(open), noncesMax)], chain.UsedMax) {
		nonces := make([]common.Hash, len(part))
		for n, o := range part {
			nonces[n] = o.Nonce
		}
		used, err := paid.rail.Node.Used(ctx, s.Asset, s.From, nonces)
		if err != nil {
			return false, err
		}
		for n, o := range part {
			if used[n] {
				have = have.Add(o.Amount)
			}
		}
		if have.Cmp(need) >= 0 {
			return true, nil
		}
	}
	return false, nil
}

// wait refuses a payment of which too many of the same payer are open; nothing speaks against the payment itself.
func (p *Path) wait() *refusal.Error {
	return refusal.New(call.NotReady, "too many payments of this payer are under way; this one was not used, send it again in a few seconds").
		WithUntil(p.Now().Add(readyRetry))
}
