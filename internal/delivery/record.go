package delivery

import (
	"context"
	"fmt"
	"time"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/refund"
	"market/internal/upstream"
)

// whole is the settlement as the rail tells of it.
func (s settlement) whole() chain.Settlement {
	return chain.Settlement{Status: chain.StatusSettled, Proof: s.proof, Transaction: s.proof.Transaction}
}

// paidHead is what is known of a paid call before its service is asked.
func paidHead(h held, s settlement) Answer {
	return Answer{Call: h.id, Charged: ChargedPending, Receipt: receipt(h, true, s.whole(), ""),
		Payment: &Payment{Network: h.rail.Network.ID, Asset: h.signed.Asset, Payer: h.signed.From, Amount: h.signed.Value,
			Transaction: s.proof.Transaction, Proved: s.word == "", Word: s.word}}
}

// record writes how a paid call ended and answers it: the third commit. Not one byte of the service's answer leaves before the commit is
// known, but of a stream all but its end; while it is not, the call is pending. result is nil where the service was not asked.
func (p *Path) record(ctx context.Context, r Request, h held, d Delivery, s settlement, result *upstream.Result) Answer {
	own, cancel := detached(ctx, recordTime)
	defer cancel()
	d.sealed = p.seal(d, result)
	d, err := p.Recorder.persist(own, d)
	if err != nil {
		return *p.pending(h, s.whole(), err)
	}
	a, head := p.answer(d, s.standing, result), paidHead(h, s)
	a.Receipt, a.Payment = head.Receipt, head.Payment
	if s.word != "" && a.Charged == ChargedYes {
		a.Charged = ChargedPending
	}
	if d.Refund != nil {
		a.Refund = &Refund{Network: a.Payment.Network, Asset: a.Payment.Asset, To: a.Payment.Payer, Amount: a.Payment.Amount, State: refund.StateOwed}
	}
	if d.Outcome == call.Served {
		return p.withReceipt(a, Record{Call: d.Call, Outcome: d.Outcome, Service: r.Target.Service.Slug, Path: d.Path, AskedAt: d.AskedAt, Network: a.Payment.Network,
			Payer: a.Payment.Payer, Treasury: h.signed.To, Transaction: a.Payment.Transaction, Proved: a.Payment.Proved})
	}
	return p.withOutcome(own, a)
}

// recordTrial writes how a trial call ended and answers it.
func (p *Path) recordTrial(ctx context.Context, d Delivery, s standing, result *upstream.Result) Answer {
	own, cancel := detached(ctx, recordTime)
	defer cancel()
	d, err := p.Recorder.persist(own, d)
	if err != nil {
		return Answer{Call: d.Call, Reason: call.Internal, Charged: ChargedNo,
			Err: fmt.Errorf("trial call %s: %w", d.Call, err)}
	}
	return p.answer(d, s, result)
}

// answer shows a recorded delivery to its caller.
func (p *Path) answer(d Delivery, s standing, result *upstream.Result) Answer {
	a := Answer{Call: d.Call, Outcome: d.Outcome, Reason: d.Reason, Party: d.Party, Detail: d.Detail, Charged: ChargedNo}
	if d.Outcome == call.Served && !d.Trial {
		a.Charged = ChargedYes
	}
	if s.cooling {
		a.RetryAfter = max(time.Second, s.rest)
	}
	if result != nil {
		a.Status, a.Header, a.Body, a.ServiceAnswer, a.Err = result.Status, result.Header, result.Body, result.ServiceAnswer, result.Err
	}
	return a
}
