package desk

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"market/internal/chain"
	"market/internal/payment"
	"market/internal/refusal"
)

// settle moves the money of a payment, once. It goes on when the client leaves: the client cannot take back what it has asked for, and will
// ask again.
func (d *Desk) settle(c echo.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), d.settleTime)
	defer cancel()
	rq, err := d.admit(ctx, c)
	if err != nil {
		return writeSettlement(c, rq, common.Hash{}, err)
	}
	transaction, err := d.move(ctx, rq)
	return writeSettlement(c, rq, transaction, err)
}

func (d *Desk) move(ctx context.Context, rq request) (common.Hash, error) {
	rail, found, err := d.identify(rq)
	if err != nil {
		return common.Hash{}, err
	}
	signed := found.Signed
	if err := vouch(ctx, rail, found); err != nil {
		return common.Hash{}, err
	}
	if err := d.inTime(ctx, rail, signed); err != nil {
		return common.Hash{}, err
	}
	if transaction, err := d.refuseUndone(ctx, rail, signed); err != nil {
		return transaction, err
	}
	s := rail.Engine.Settle(ctx, signed)
	if err := d.keepUndone(ctx, rail, signed, s); err != nil {
		return s.Transaction, err
	}
	if err := verdictOf(s); err != nil {
		return s.Transaction, err
	}
	return s.Transaction, d.tell(ctx, rail, signed, isUpfront(rq))
}

// isUpfront says whether the seller settles before it does the work, and never verifies.
func isUpfront(rq request) bool {
	flow, _ := rq.required.Extra("paymentFlow")
	return flow == "upfront"
}

// tell says whether this request may be told that its payment is settled; nil is a yes.
func (d *Desk) tell(ctx context.Context, r Rail, s chain.Signed, upfront bool) error {
	may, err := d.sales.Settled(ctx, d.db, r.Network.ID, s, upfront)
	switch {
	case err != nil:
		return decided(payment.CodePending, pendingText, err) // the money has moved, so there is nothing else to say
	case !may && upfront:
		return decided(payment.CodeDuplicate, "A request with this payment has been told that it is settled, and in the flow upfront each request is a sale of its own.", nil)
	case !may:
		return decided(payment.CodeDuplicate, "This payment was verified for several sales, and another one of them has been told that it is settled.", nil)
	}
	return nil
}

// inTime checks the time of an authorization. One that may have been shown to the chain has had its time: what became of it is asked of the
// engine, however late.
func (d *Desk) inTime(ctx context.Context, r Rail, s chain.Signed) error {
	late := checkLife(ctx, r, s)
	if _, decided := errors.AsType[*refusal.Error](late); !decided {
		return late
	}
	shown, err := r.Engine.Shown(ctx, s)
	if err != nil {
		return err
	}
	if shown {
		return nil
	}
	return late
}

// pendingText is told with settlement_pending. Any other answer would have the seller ask for a second payment.
const pendingText = "The payment may have been made and is not proved yet. Send the same request again; do not ask the payer for another payment."

const undoneText = "The transaction was mined and moved nothing."

// verdictOf is what a settlement is told as; nil is a yes. A refusal of the asset is decided. What the engine calls trouble is ours, and nothing
// was sent.
func verdictOf(s chain.Settlement) error {
	code := payment.Code(s.Why)
	switch s.Status {
	case chain.StatusSettled:
		return nil
	case chain.StatusReleased:
		if code == payment.CodeSettle {
			return trouble(payment.CodeSettle, s.Err)
		}
		return decided(code, "The token refuses this transfer. Nothing was sent.", s.Err)
	case chain.StatusRejected:
		return decided(code, undoneText, s.Err)
	case chain.StatusUnknown:
		if code == codeTransfer {
			return decided(code, "The transaction succeeded, and the token's transfer is not in it.", s.Err)
		}
		if s.Transaction == (common.Hash{}) {
			// Something of ours could not even tell whether there is a transaction.
			no := trouble(payment.CodePending, s.Err)
			no.message = pendingText
			return no
		}
		return decided(payment.CodePending, pendingText, s.Err)
	}
	return trouble(payment.CodeSettle, s.Err)
}
