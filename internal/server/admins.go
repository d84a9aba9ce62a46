package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/identity"
	"market/internal/refusal"
)

// An adminView is a wallet that has the role of an admin, or had it.
type adminView struct {
	Wallet    string  `json:"wallet"`
	On        bool    `json:"on"`
	Source    string  `json:"source"` // config or admin
	GrantedBy string  `json:"granted_by"`
	GrantedAt string  `json:"granted_at"`
	RevokedBy *string `json:"revoked_by"` // null: it has the role
	RevokedAt *string `json:"revoked_at"`
}

func adminViewOf(a identity.Admin) adminView {
	return adminView{Wallet: a.Wallet.Hex(), On: a.RevokedAt.IsZero(), Source: a.Source, GrantedBy: a.GrantedBy, GrantedAt: timeJSON(a.GrantedAt),
		RevokedBy: orNull(a.RevokedBy), RevokedAt: timeOrNull(a.RevokedAt)}
}

// listAdmins serves GET /api/v1/admin/admins. There are few of them, and one answer has all.
func (s *Server) listAdmins(c echo.Context) error {
	admins, err := s.identities.Admins(c.Request().Context(), s.db)
	if err != nil {
		return err
	}
	views := make([]adminView, 0, len(admins))
	for _, a := range admins {
		views = append(views, adminViewOf(a))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "token": s.adminToken != ""})
}

const adminForm = `expected {"wallet": "0x…", "on": true or false, "reason": text}`

// setAdmin serves POST /api/v1/admin/admins.
func (s *Server) setAdmin(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	var sent struct {
		Wallet *string `json:"wallet"`
		On     *bool   `json:"on"`
		Reason *string `json:"reason"`
	}
	if err := decodeOne(body, &sent); err != nil {
		return refusal.New(call.InvalidRequest, "/ "+adminForm)
	}
	switch {
	case sent.Wallet == nil:
		return refusal.New(call.InvalidRequest, "/wallet is missing: %s", adminForm)
	case sent.On == nil:
		return refusal.New(call.InvalidRequest, "/on is missing: %s", adminForm)
	}
	wallet, err := readWallet(*sent.Wallet)
	if err != nil {
		return err
	}
	reason, err := reasonOf(sent.Reason)
	if err != nil {
		return err
	}
	set, err := s.role(c, wallet, *sent.On, reason)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, adminViewOf(set))
}

func readWallet(text string) (common.Address, error) {
	if !identity.IsWallet(text) {
		return common.Address{}, refusal.New(call.InvalidRequest, "/wallet %s", noWallet)
	}
	return common.HexToAddress(text), nil
}

const noWallet = "must be an address: 0x and 40 hexadecimal digits, in one case or with the right checksum"

// role makes a wallet an admin, or an admin no more, and keeps who did. The last wallet that has the role keeps it where there is no admin token: nobody
// could give it to another one. Who has lost the role since the request was let in gives it to nobody, and not to itself.
func (s *Server) role(c echo.Context, wallet common.Address, on bool, reason string) (set identity.Admin, err error) {
	ctx, by := c.Request().Context(), authorOf(c)
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		held, err := s.identities.HoldAdmins(ctx, tx)
		if err != nil {
			return err
		}
		if p := principalOf(c); p.Kind != identity.AdminToken && !slices.Contains(held, p.Wallet) {
			return refusal.New(call.Forbidden, "your wallet is no admin any more")
		}
		before, err := s.identities.Admin(ctx, tx, wallet)
		if err != nil {
			return err
		}
		action, change := audit.AdminGranted, s.identities.Grant
		if !on {
			action, change = audit.AdminRevoked, s.identities.Revoke
			if s.adminToken == "" && len(held) == 1 && held[0] == wallet {
				return refusal.New(call.Conflict, "%s is the last admin, and there is no admin token: nobody could undo it. Make another wallet an admin before", wallet)
			}
		}
		changed, err := change(ctx, tx, wallet, by.Name)
		if err != nil {
			return err
		}
		if set, err = s.identities.Admin(ctx, tx, wallet); err != nil {
			return err
		}
		if !changed {
			return asItWas(set, on)
		}
		return s.keepEntry(ctx, tx, audit.Entry{Actor: string(by.Actor), By: by.Name, Action: action, Subject: audit.Admin(wallet.Hex()), Reason: reason}, roleOf(before), roleOf(set))
	})
	return set, err
}

// asItWas refuses a change that would change nothing, and says who was there first.
func asItWas(a identity.Admin, on bool) error {
	switch {
	case on:
		return refusal.New(call.Conflict, "%s is an admin already, made one by %s at %s", a.Wallet, a.GrantedBy, humanTime(a.GrantedAt))
	case a.RevokedBy != "":
		return refusal.New(call.Conflict, "%s is no admin any more, by %s at %s", a.Wallet, a.RevokedBy, humanTime(a.RevokedAt))
	}
	return refusal.New(call.Conflict, "%s is no admin, and never was", a.Wallet)
}

// roleOf is how the role of a wallet stands, as the audit keeps it.
func roleOf(a identity.Admin) map[string]any {
	if a.GrantedAt.IsZero() {
		return map[string]any{"admin": false}
	}
	return map[string]any{"admin": a.RevokedAt.IsZero(), "source": a.Source, "granted_by": a.GrantedBy, "revoked_by": orNull(a.RevokedBy)}
}

// keepEntry keeps a decision with what stood before and after.
func (s *Server) keepEntry(ctx context.Context, tx pgx.Tx, e audit.Entry, before, after map[string]any) (err error) {
	if err := e.Changed(before, after); err != nil {
		return err
	}
	_, err = audit.Store{}.Add(ctx, tx, e)
	return err
}
