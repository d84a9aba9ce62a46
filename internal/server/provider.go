package server

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/catalog"
	"market/internal/identity"
)

// An accountView is an account as it is shown to itself.
type accountView struct {
	ID        uuid.UUID `json:"id"`
	Wallet    string    `json:"wallet"`
	Plan      string    `json:"plan"`
	CreatedAt string    `json:"created_at"`
	Admin     bool      `json:"admin"`
}

func (s *Server) accountViewOf(a identity.Account) accountView {
	return accountView{ID: a.ID, Wallet: a.Wallet.Hex(), Plan: s.store.Plans.Of(a.Plan).Name, CreatedAt: timeJSON(a.CreatedAt), Admin: a.Admin}
}

// A providerView is what an account has.
type providerView struct {
	accountView
	Services int       `json:"services"` // that are not retired
	Limits   []planUse `json:"limits"`
}

// provider serves GET /api/v1/provider.
func (s *Server) provider(c echo.Context) error {
	own, err := s.identities.ByID(c.Request().Context(), s.db, principalOf(c).Account)
	if err != nil {
		return err
	}
	limits, err := s.planUses(c.Request().Context(), own)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, providerView{accountView: s.accountViewOf(own), Services: own.Services, Limits: limits})
}

// providersServices serves GET /api/v1/provider/services, the newest first, as their owner sees them. The cursor is the id of the last one that was shown.
func (s *Server) providersServices(c echo.Context) error {
	page, err := readPage(c)
	if err != nil {
		return err
	}
	before, err := page.before()
	if err != nil {
		return err
	}
	services, err := s.store.Owned(c.Request().Context(), s.db, principalOf(c).Account, before, page.limit+1)
	if err != nil {
		return err
	}
	services, next := cut(services, page.limit, func(v *catalog.Service) uuid.UUID { return v.ID })
	views := make([]serviceView, 0, len(services))
	for _, v := range services {
		view, err := s.ownersView(c, v)
		if err != nil {
			return err
		}
		views = append(views, view)
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}

// A keyView is all that is shown of an API key. Token is there in the answer that made it, and in no other.
type keyView struct {
	ID         uuid.UUID        `json:"id"`
	Name       string           `json:"name"`
	Token      string           `json:"token,omitempty"`
	Hint       string           `json:"hint"` // the end of the token
	Scopes     []identity.Scope `json:"scopes"`
	CreatedAt  string           `json:"created_at"`
	ExpiresAt  string           `json:"expires_at,omitempty"`
	LastUsedAt string           `json:"last_used_at,omitempty"`
	RevokedAt  string           `json:"revoked_at,omitempty"`
}

func keyViewOf(k identity.APIKey) keyView {
	return keyView{ID: k.ID, Name: k.Name, Hint: k.Hint, Scopes: k.Scopes, CreatedAt: timeJSON(k.CreatedAt), ExpiresAt: timeJSON(k.ExpiresAt),
		LastUsedAt: timeJSON(k.LastUsedAt), RevokedAt: timeJSON(k.RevokedAt)}
}

// listKeys serves GET /api/v1/provider/keys.
func (s *Server) listKeys(c echo.Context) error {
	keys, err := s.identities.Keys(c.Request().Context(), s.db, principalOf(c).Account)
	if err != nil {
		return err
	}
	views := make([]keyView, 0, len(keys))
	for _, k := range keys {
		views = append(views, keyViewOf(k))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views})
}

// newKey serves POST /api/v1/provider/keys.
func (s *Server) newKey(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	draft, err := identity.ParseKeyDraft(body)
	if err != nil {
		return err
	}
	view, err := s.makeKey(c, draft)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, view)
}

// makeKey makes a key of the account that asks, for the API and the pages, and keeps that it did.
func (s *Server) makeKey(c echo.Context, draft identity.KeyDraft) (keyView, error) {
	var view keyView
	ctx := c.Request().Context()
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		own := principalOf(c).Account
		made, token, err := s.identities.NewKey(ctx, tx, own, draft)
		if err != nil {
			return err
		}
		view = keyViewOf(made)
		view.Token = token.Reveal()
		return s.note(ctx, tx, authorOf(c), audit.KeyMade, own, "made", map[string]any{}, map[string]any{"key": made.ID, "name": made.Name, "hint": made.Hint, "scopes": made.Scopes,
			"expires_at": view.ExpiresAt})
	})
	return view, err
}

// revokeKey serves DELETE /api/v1/provider/keys/{id}.
func (s *Server) revokeKey(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if err := s.dropKey(c, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// dropKey revokes a key of the account that asks, for the API and the pages, and keeps that it did.
func (s *Server) dropKey(c echo.Context, id uuid.UUID) error {
	ctx, own := c.Request().Context(), principalOf(c).Account
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		k, err := s.identities.RevokeKey(ctx, tx, own, id)
		if err != nil {
			return err
		}
		return s.note(ctx, tx, authorOf(c), audit.KeyRevoked, own, "revoked", map[string]any{"key": k.ID, "name": k.Name, "hint": k.Hint}, map[string]any{})
	})
}

func jsonOf(of map[string]any) (json.RawMessage, error) { return json.Marshal(of) }
