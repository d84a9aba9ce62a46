package delivery

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/payment"
	"market/internal/refund"
)

// statementVersion is that of the receipts which this market signs.
const statementVersion = 1

// Receipt returns what the wallet that took the money signs about a call once it is final: an x402 receipt where it was served, our own outcome
// receipt where it was not. It is made from what is kept, so it is the same at each read. nil: nobody paid, the call is open, the wallet's
// key is not ours any more, or what paid for the call is not proved, or is not on the chain any more.
func (p *Path) Receipt(r Record) *payment.Signed {
	switch {
	case r.Network == "" || r.Outcome == "" || r.Trial:
		return nil
	case r.Word != "", r.Outcome == call.Served && (!r.Proved || r.Dropped || r.TakenBack):
		return nil
	}
	var says payment.Statement = p.outcomeReceipt(r)
	if r.Outcome == call.Served {
		says = p.servedReceipt(r)
	}
	signed, err := p.Notary.SignFor(r.Treasury, says)
	if err != nil {
		p.OnError(fmt.Errorf("sign receipt of call %s: %w", r.Call, err))
		return nil
	}
	return signed
}

// servedReceipt is dated at the instant at which the payment was proved and the service was asked. That is known before the answer is
// recorded, and is kept with it, so the receipt that goes with the answer is the one that is read later.
func (p *Path) servedReceipt(r Record) payment.Receipt {
	return payment.Receipt{Version: statementVersion, Network: r.Network, ResourceURL: p.resourceURL(r.Service, r.Path), Payer: r.Payer.Hex(),
		IssuedAt: uint64(r.AskedAt.Unix()), Transaction: hashText(r.Transaction)} //nolint:gosec // a database after 1970
}

func (p *Path) outcomeReceipt(r Record) payment.OutcomeReceipt {
	out := payment.OutcomeReceipt{Version: statementVersion, Network: r.Network, ResourceURL: p.resourceURL(r.Service, r.Path), Payer: r.Payer.Hex(),
		IssuedAt: uint64(r.Recorded.Unix()), Transaction: hashText(r.Transaction), Call: r.Call.String(), Outcome: string(r.Outcome), //nolint:gosec // as above
		Reason: string(r.Reason), Amount: r.Amount.String(), Asset: r.Asset.Hex(), RefundState: payment.RefundNone}
	if !r.Proved {
		out.Transaction = "" // what was sent moved nothing
	}
	switch {
	case r.Refund != nil && r.Refund.State == refund.StateVoid, r.Reason == call.SettlementLost:
		out.RefundState = payment.RefundVoid
	case r.Refund != nil:
		out.RefundState, out.RefundNonce = payment.RefundOwed, r.Refund.Nonce.Hex()
	}
	return out
}

// withReceipt puts the receipt of a served call into the answer's settlement, where x402 clients look for it.
func (p *Path) withReceipt(a Answer, r Record) Answer {
	if !a.Served() || a.Receipt == nil {
		return a
	}
	response := a.Receipt.WithReceipt(p.Receipt(r))
	a.Receipt = &response
	return a
}

// withOutcome adds the receipt of a call that was recorded and not served. It is read back for that: what was written is what is signed.
func (p *Path) withOutcome(ctx context.Context, a Answer) Answer {
	r, err := Lookup(ctx, p.DB, a.Call)
	if err != nil {
		p.OnError(err) // the receipt can be read later
		return a
	}
	a.Signed = p.Receipt(r)
	return a
}

func (p *Path) resourceURL(slug, upstreamPath string) string {
	return p.PublicURL + "/s/" + slug + upstreamPath
}

func hashText(h common.Hash) string {
	if h == (common.Hash{}) {
		return ""
	}
	return h.Hex()
}
