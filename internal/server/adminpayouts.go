package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/payout"
	"market/internal/refusal"
)

// An adminPayoutView is a payout as admins see it.
type adminPayoutView struct {
	payoutView
	Account  string  `json:"account"`
	Treasury string  `json:"treasury"`
	Stopped  *string `json:"stopped"` // why nothing may be sent to the account; null: it may
	MadeBy   string  `json:"made_by"`
	Attempts int     `json:"attempts"`
	Signed   bool    `json:"signed"`
}

func (s *Server) adminPayoutViewOf(p payout.Payout) adminPayoutView {
	return adminPayoutView{s.payoutViewOf(p), p.Account.String(), p.Treasury.Hex(), orNull(p.Stopped), p.MadeBy, p.Attempts, p.Signed}
}

var payoutStates = []payout.State{payout.StateOwed, payout.StateSent, payout.StateConfirmed, payout.StateParked, payout.StateCancelled}

// listAllPayouts serves GET /api/v1/admin/payouts.
func (s *Server) listAllPayouts(c echo.Context) error {
	list, err := readPage(c, "account", "state")
	if err != nil {
		return err
	}
	f := payout.Filter{State: payout.State(list.more.Get("state"))}
	if f.State != "" && !slices.Contains(payoutStates, f.State) {
		return badParameter("state", "is none that a payout can be in")
	}
	if text := list.more.Get("account"); text != "" {
		if f.Account, err = uuid.Parse(text); err != nil {
			return badParameter("account", "must be the id of an account")
		}
	}
	return s.writePayouts(c, list, f, func(p payout.Payout) any { return s.adminPayoutViewOf(p) })
}

// payNow serves POST /api/v1/admin/payouts: what is there for an account is paid out now.
func (s *Server) payNow(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	var sent struct {
		Account *uuid.UUID `json:"account"`
		Network *string    `json:"network"`
		Asset   *string    `json:"asset"`
		Reason  *string    `json:"reason"`
	}
	if err := decodeOne(body, &sent); err != nil || sent.Account == nil || sent.Network == nil || sent.Asset == nil || !common.IsHexAddress(*sent.Asset) {
		return refusal.New(call.InvalidRequest, `/ expected {"account": id, "network": CAIP-2 name, "asset": address, "reason": text}`)
	}
	reason, err := reasonOf(sent.Reason)
	if err != nil {
		return err
	}
	var views []adminPayoutView
	ctx, by := c.Request().Context(), authorOf(c)
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		made, err := s.payouts.PayNow(ctx, tx, *sent.Account, *sent.Network, common.HexToAddress(*sent.Asset), by.Name)
		for _, p := range made {
			views = append(views, s.adminPayoutViewOf(p))
			entry := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: audit.PayoutMade, Subject: audit.Payout(p.ID), Reason: reason}
			if err := s.keepEntry(ctx, tx, entry, map[string]any{}, payoutCase(p)); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return noPayout(err)
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, map[string]any{"items": views})
}

// payoutCase is how a payout stands, as the audit keeps it.
func payoutCase(p payout.Payout) map[string]any {
	return map[string]any{"account": p.Account, "number": p.Number, "network": p.Network, "asset": p.Asset.Hex(), "amount": p.Amount.String(), "state": p.State, "held": p.Held}
}

// A payoutDecision is what an admin can do with a payout.
type payoutDecision struct {
	action audit.Action
	do     func(ctx context.Context, tx pgx.Tx, id uuid.UUID) error
}

// payoutDecisions are by the last part of the address.
var payoutDecisions = map[string]payoutDecision{
	"hold":    {audit.PayoutHeld, payout.Store{}.Hold},
	"release": {audit.PayoutReleased, payout.Store{}.Release},
	"retry":   {audit.PayoutRetried, payout.Store{}.Retry},
	"cancel":  {audit.PayoutCancelled, payout.Store{}.Cancel},
}

// decidePayout serves POST /api/v1/admin/payouts/{id}/ with the name of a decision.
func (s *Server) decidePayout(name string) echo.HandlerFunc {
	decision := payoutDecisions[name]
	return func(c echo.Context) error {
		after, err := decidedOn(c, func(ctx context.Context, id uuid.UUID, by catalog.Author, reason string) (payout.Payout, error) {
			return s.decideOnPayout(ctx, decision, id, by, reason)
		})
		if err != nil {
			return err
		}
		return s.writeJSON(c, http.StatusOK, typeJSON, s.adminPayoutViewOf(after))
	}
}

// decideOnPayout does what an admin has decided, and keeps it with the reason.
func (s *Server) decideOnPayout(ctx context.Context, decision payoutDecision, id uuid.UUID, by catalog.Author, reason string) (after payout.Payout, err error) {
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		before, err := payout.Store{}.Find(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := decision.do(ctx, tx, id); err != nil {
			return err
		}
		if after, err = (payout.Store{}).Find(ctx, tx, id); err != nil {
			return err
		}
		entry := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: decision.action, Subject: audit.Payout(id), Reason: reason}
		return s.keepEntry(ctx, tx, entry, payoutCase(before), payoutCase(after))
	})
	if err != nil {
		return payout.Payout{}, noPayout(err)
	}
	return after, nil
}
