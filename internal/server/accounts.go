package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/identity"
	"market/internal/refusal"
)

// An accountRow is an account as admins see it.
type accountRow struct {
	accountView
	PlanKept   string `json:"plan_kept"` // as its row has it; empty: it was never given one. The plan is the first of the table where the table does not have it
	LastSeenAt string `json:"last_seen_at"`
	Services   int    `json:"services"` // that are not retired
}

func (s *Server) accountRowOf(a identity.Account) accountRow {
	return accountRow{accountView: s.accountViewOf(a), PlanKept: a.Plan, LastSeenAt: timeJSON(a.LastSeenAt), Services: a.Services}
}

// readAccounts reads the page of accounts that was asked for, the newest first, or the one of ?wallet=. The cursor is the id of the last one that was
// shown.
func (s *Server) readAccounts(c echo.Context, more ...string) (accounts []identity.Account, list page, next string, err error) {
	if list, err = readPage(c, append(more, "wallet")...); err != nil {
		return nil, page{}, "", err
	}
	before, err := list.before()
	if err != nil {
		return nil, page{}, "", err
	}
	ctx := c.Request().Context()
	if text := strings.TrimSpace(list.more.Get("wallet")); text != "" {
		wallet, err := readWallet(text)
		if err != nil {
			return nil, page{}, "", badParameter("wallet", noWallet)
		}
		one, err := s.identities.ByWallet(ctx, s.db, wallet)
		if no, ok := errors.AsType[*refusal.Error](err); ok && no.Reason == call.NotFound {
			return nil, list, "", nil
		} else if err != nil {
			return nil, page{}, "", err
		}
		return []identity.Account{one}, list, "", nil
	}
	if accounts, err = s.identities.List(ctx, s.db, before, list.limit+1); err != nil {
		return nil, page{}, "", err
	}
	accounts, next = cut(accounts, list.limit, func(a identity.Account) uuid.UUID { return a.ID })
	return accounts, list, next, nil
}

// listAccounts serves GET /api/v1/admin/accounts.
func (s *Server) listAccounts(c echo.Context) error {
	accounts, _, next, err := s.readAccounts(c)
	if err != nil {
		return err
	}
	views := make([]accountRow, 0, len(accounts))
	for _, a := range accounts {
		views = append(views, s.accountRowOf(a))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "plans": s.store.Plans.Names(), "next_cursor": next})
}

// setPlan serves POST /api/v1/admin/accounts/{id}/plan.
func (s *Server) setPlan(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	var sent struct {
		Plan   *string `json:"plan"`
		Reason *string `json:"reason"`
	}
	if err := decodeOne(body, &sent); err != nil || sent.Plan == nil {
		return refusal.New(call.InvalidRequest, `/ expected {"plan": name, "reason": text}`)
	}
	reason, err := reasonOf(sent.Reason)
	if err != nil {
		return err
	}
	set, err := s.planTo(c, id, *sent.Plan, reason)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, s.accountRowOf(set))
}

// planTo puts an account on a plan, and keeps who did. What it has beyond a smaller plan stays; nothing is added to it.
func (s *Server) planTo(c echo.Context, id uuid.UUID, plan, reason string) (set identity.Account, err error) {
	if !s.store.Plans.Has(plan) {
		return identity.Account{}, refusal.New(call.InvalidRequest, "/plan is none of the plans: %s", strings.Join(s.store.Plans.Names(), ", "))
	}
	ctx, by := c.Request().Context(), authorOf(c)
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		before, err := s.identities.SetPlan(ctx, tx, id, plan)
		if err != nil {
			return err
		}
		if before == plan {
			return refusal.New(call.Conflict, "the account has the plan %s already", plan)
		}
		if set, err = s.identities.ByID(ctx, tx, id); err != nil {
			return err
		}
		entry := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: audit.PlanSet, Subject: audit.Account(id), Reason: reason}
		return s.keepEntry(ctx, tx, entry, map[string]any{"wallet": set.Wallet.Hex(), "plan": before}, map[string]any{"wallet": set.Wallet.Hex(), "plan": plan})
	})
	return set, err
}

var errMore = errors.New("there is something after it")

// decodeOne decodes one JSON value: no unknown member, and nothing after it.
func decodeOne(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errMore
	}
	return nil
}
