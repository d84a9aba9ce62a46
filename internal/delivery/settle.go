package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/crash"
	"market/internal/payment"
	"market/internal/readiness"
	"market/internal/refusal"
)

// A settlement is a proved payment and what the service's standing was when it was written.
type settlement struct {
	standing
	proof chain.Proof
	// word is whose word it is that the payment was settled; empty: it is proved. Of a word the proof has the transaction that it names, and
	// nothing else.
	word string
}

// settle shows the authorization to the chain and writes what became of it: the second commit. A payment that was proved before this process
// took the call over is not shown again.
func (p *Path) settle(ctx context.Context, r Request, h held) (settlement, *Answer) {
	lease := p.leaseOf(r)
	if h.proof != nil {
		return p.resume(ctx, r, h, lease)
	}
	taken, a := p.exposed(ctx, r, h)
	if a != nil {
		return settlement{}, a
	}
	began := time.Now()
	own, cancel := detached(ctx, settleTime)
	result, onWord := p.show(h.units.In(own), r, h, lease)
	cancel()
	if result.ByUs && !h.shown && result.Proof.BlockNumber > h.block { // else it may be older than the request
		p.Ready.Proved(h.rail.Network.ID, readiness.Settle, began)
	}
	if result.Status == chain.StatusReleased && !h.shown { // nothing has left us, so nothing of it can be lost
		p.Ready.Return(taken)
	}
	p.tried(h.signed.From, result, onWord != nil)
	if onWord != nil {
		return *onWord, nil
	}
	// That a source is out was told when it was found out, once: every call that meets it would be one line more.
	if result.Err != nil && !limited(result.Err) {
		p.OnError(fmt.Errorf("settle call %s: %w", h.id, result.Err))
	}
	writing, cancel := detached(ctx, writeTime)
	defer cancel()
	switch result.Status {
	case chain.StatusSettled:
		if a := p.holdForReview(writing, h, result); a != nil {
			return settlement{}, a
		}
		crash.BeforeMove(h.state, call.Asked, call.Settled)
		standing, err := settled(writing, p.DB, h.id, p.owner, r.Target.Service.ID, result.Proof, lease)
		switch {
		case err == nil:
			crash.AfterMove(h.state, standing.state())
			return settlement{standing: standing, proof: result.Proof}, nil
		case errors.Is(err, errTransferTaken):
			return settlement{}, p.unsettled(writing, r, h, call.Unknown, result, err)
		}
		// The payment is proved and its commit is not known: the sweeper finds it, and so does whoever asks again.
		return settlement{}, p.pending(h, result, err)
	case chain.StatusReleased:
		return settlement{}, p.unsettled(writing, r, h, call.StateReleased, result, nil)
	case chain.StatusRejected:
		if result.PayerFault {
			return settlement{}, p.unsettled(writing, r, h, call.Rejected, result, nil)
		}
		return settlement{}, p.unsettled(writing, r, h, call.Unknown, result, nil)
	case chain.StatusUnknown:
		return settlement{}, p.unsettled(writing, r, h, call.Unknown, result, nil)
	case chain.StatusSaid: // was written above
	}
	return settlement{}, p.unsettled(writing, r, h, call.Unknown, result, fmt.Errorf("settlement of call %s has no status", h.id))
}

// exposed takes the call out of what may be lost, right before its authorization is shown; it waits for its turn for a second at most. A call that may not be
// shown now is released: nothing has left us. One that was shown before costs what it costs again, because that was before the newest proof.
func (p *Path) exposed(ctx context.Context, r Request, h held) (readiness.Admission, *Answer) {
	own, cancel := detached(ctx, admitTime)
	taken, err := p.Ready.Admit(own, h.rail.Network.ID, worth(h.rail.Network, h.signed))
	cancel()
	if err == nil {
		return taken, nil
	}
	writing, cancel := detached(ctx, writeTime)
	defer cancel()
	return taken, p.unsettled(writing, r, h, call.StateReleased, chain.Settlement{Status: chain.StatusReleased, Err: err}, nil)
}

// worth is what an authorization moves, in micro-dollars. An asset that is not configured any more counts a dollar a unit.
func worth(n chain.Network, s chain.Signed) int64 {
	asset, _ := n.Asset(s.Asset)
	return s.Value.MicroUSD(asset.Decimals)
}

// resume goes on with a call whose payment was proved, as long as the chain still has it.
func (p *Path) resume(ctx context.Context, r Request, h held, lease time.Duration) (settlement, *Answer) {
	own, cancel := detached(ctx, writeTime)
	defer cancel()
	sent := chain.Settlement{Transaction: h.proof.Transaction}
	proof, depth, stands, err := h.rail.Chain.Locate(own, h.signed.Expect(), h.proof.Transaction)
	if err != nil || !stands || depth < h.rail.Network.ServeAtDepth {
		return settlement{}, p.pending(h, sent, err)
	}
	crash.BeforeMove(call.Settled, call.Asked)
	standing, err := resume(own, p.DB, h.id, p.owner, r.Target.Service.ID, lease)
	if err != nil {
		return settlement{}, p.pending(h, sent, err)
	}
	crash.AfterMove(call.Settled, standing.state())
	return settlement{standing: standing, proof: proof}, nil
}

// unsettled writes that no settlement is proved and says so. A call whose authorization another process may have shown before is not
// released by this one, which cannot know that nothing left.
func (p *Path) unsettled(ctx context.Context, r Request, h held, to call.State, s chain.Settlement, cause error) *Answer {
	if h.shown && to == call.StateReleased {
		to = call.Unknown
	}
	crash.BeforeMove(h.state, to)
	if err := p.payments.Unsettle(ctx, p.DB, h.id, p.owner, to, s.Why, s.Transaction); err != nil {
		return p.pending(h, s, errors.Join(cause, err))
	}
	crash.AfterMove(h.state, to)
	switch {
	case to == call.Unknown:
		return p.pending(h, s, cause)
	case s.PayerFault:
		return p.unpaid(ctx, r, h, refusal.New(call.SettleRejected, "the token refuses this payment: %s", s.Why).WithCause(payment.Code(s.Why)), s)
	}
	return p.unpaid(ctx, r, h, refusal.New(call.Released, "the payment could not be sent; it was not used, send the same one again").
		WithUntil(p.Now().Add(pendingRetry)).WithCause(s.Err), s)
}

// unpaid is the answer to a payment that did not pay and, as our own node proves, will not.
func (p *Path) unpaid(ctx context.Context, r Request, h held, no *refusal.Error, s chain.Settlement) *Answer {
	d := p.newDelivery(h.id, r).end(no.Reason, no.Detail)
	if _, err := p.Recorder.Refuse(ctx, d); err != nil {
		p.OnError(err)
	}
	a := p.challenged(ctx, r, no, refused(no, p.Now()))
	a.Call, a.Receipt = h.id, receipt(h, false, s, payment.Code(s.Why))
	return &a
}

// pending is the answer while nobody knows whether the money moved. It is never a 402: a client signs a second authorization on each.
func (p *Path) pending(h held, s chain.Settlement, cause error) *Answer {
	return &Answer{
		Call: h.id, Reason: call.SettlementPending, Charged: ChargedPending, RetryAfter: pendingRetry,
		Detail:  "the payment was sent and is not proved yet; ask for the call, or send the same payment again, and sign no other",
		Receipt: receipt(h, false, s, payment.CodePending),
		Payment: &Payment{Network: h.rail.Network.ID, Asset: h.signed.Asset, Payer: h.signed.From, Amount: h.signed.Value, Transaction: s.Transaction},
		Err:     errors.Join(cause, s.Err),
	}
}

// receiptOf starts a receipt in the version of the request that is answered, whichever the payment came in first.
func receiptOf(v payment.Version, n chain.Network, payer common.Address) *payment.SettleResponse {
	return &payment.SettleResponse{Version: v, Network: v.NetworkName(n), Payer: payer.Hex()}
}

// receipt is the settlement in x402's words.
func receipt(h held, success bool, s chain.Settlement, code payment.Code) *payment.SettleResponse {
	out := receiptOf(h.version, h.rail.Network, h.signed.From)
	out.Success = success
	switch {
	case success:
		out.Transaction = s.Proof.Transaction.Hex()
	default:
		out.ErrorReason = code
		if s.Transaction != (chain.Settlement{}).Transaction {
			out.Transaction = s.Transaction.Hex()
		}
	}
	return out
}
