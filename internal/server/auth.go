package server

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/identity"
	"market/internal/refusal"
)

// A challengeView is a message for a wallet to sign.
type challengeView struct {
	Message string `json:"message"`
	Nonce   string `json:"nonce"`
	Expires string `json:"expires_at"`
}

// newChallenge serves POST /api/v1/auth/challenge.
func (s *Server) newChallenge(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	draft, err := identity.ParseChallenge(body)
	if err != nil {
		return err
	}
	made, err := s.challenge(c, draft)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, challengeView{Message: made.Message, Nonce: made.Nonce, Expires: timeJSON(made.Expires)})
}

// challenge makes a message for a wallet to sign, for the API and the pages.
func (s *Server) challenge(c echo.Context, draft identity.ChallengeDraft) (identity.Challenge, error) {
	if err := s.take(c, &s.challenges, "challenges"); err != nil {
		return identity.Challenge{}, err
	}
	return s.signIns.Challenge(c.Request().Context(), s.db, draft)
}

// take counts a request of a network against how many of them it may send.
func (s *Server) take(c echo.Context, of *tries, what string) error {
	source, _ := sourceOf(c.Request(), s.proxies)
	if wait := of.take(call.Network(source), s.now()); wait > 0 {
		return refusal.New(call.TooMany, "too many %s from your network", what).WithUntil(s.now().Add(wait))
	}
	return nil
}

// A sessionView is a session that was opened just now. Nothing shows its token again.
type sessionView struct {
	Token   string      `json:"token"`
	Expires string      `json:"expires_at"`
	Account accountView `json:"account"`
}

// newSession serves POST /api/v1/auth/session.
func (s *Server) newSession(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	draft, err := identity.ParseSignIn(body)
	if err != nil {
		return err
	}
	opened, err := s.enter(c, draft)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, sessionView{Token: opened.Token.Reveal(), Expires: timeJSON(opened.Expires), Account: s.accountViewOf(opened.Account)})
}

// enter opens a session for a message that was signed, for the API and the pages.
func (s *Server) enter(c echo.Context, draft identity.SignInDraft) (identity.Opened, error) {
	if err := s.take(c, &s.entries, "sign-ins"); err != nil {
		return identity.Opened{}, err
	}
	source, stranger := sourceOf(c.Request(), s.proxies)
	draft.Unseen = stranger
	return s.signIns.SignIn(c.Request().Context(), s.db, draft, source)
}

// dropSession serves DELETE /api/v1/auth/session: the session that asks ends.
func (s *Server) dropSession(c echo.Context) error {
	if err := s.end(c.Request().Context(), principalOf(c), authorOf(c), bearerOf(c)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// end ends a session of somebody, and keeps that it was ended.
func (s *Server) end(ctx context.Context, p identity.Principal, by catalog.Author, token string) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		ended, err := s.identities.EndSession(ctx, tx, token)
		if err != nil || !ended {
			return err
		}
		return s.note(ctx, tx, by, audit.SessionEnded, p.Account, "signed out", map[string]any{"expires_at": timeJSON(p.Expires)}, map[string]any{})
	})
}

// note keeps in the audit what somebody did with an account that sells, or with an admin's. Of others nothing is kept for ever: anybody can have any
// number of accounts.
func (s *Server) note(ctx context.Context, tx pgx.Tx, by catalog.Author, action audit.Action, account uuid.UUID, reason string, before, after map[string]any) error {
	of, err := s.identities.ByID(ctx, tx, account)
	if err != nil || of.Services == 0 && !of.Admin {
		return err
	}
	was, err := jsonOf(before)
	if err != nil {
		return err
	}
	is, err := jsonOf(after)
	if err != nil {
		return err
	}
	_, err = audit.Store{}.Add(ctx, tx, audit.Entry{Actor: string(by.Actor), By: by.Name, Action: action, Subject: audit.Account(account),
		Reason: reason, Before: was, After: is})
	return err
}
