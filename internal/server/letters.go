package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/config"
	"market/internal/letter"
	"market/internal/refusal"
)

// Members of a listing whose host is looked up before they are kept, as JSON pointers.
const (
	baseURLMember = "/base_url"
	webhookMember = "/notices/webhook"
)

// A noticesView is where the provider of a service is told what becomes of it.
type noticesView struct {
	Email   string `json:"email,omitempty"`
	Webhook string `json:"webhook,omitempty"`
	Secret  string `json:"secret,omitempty"` // that signs for the webhook: in the answer that made it, and in no other
}

func noticesViewOf(n catalog.Notices, made config.Secret) *noticesView {
	if n == (catalog.Notices{}) {
		return nil
	}
	return &noticesView{Email: n.Email, Webhook: n.Webhook, Secret: made.Reveal()}
}

// vetWebhook looks up where a webhook leads that was not there before, by the rules of base URLs.
func (s *Server) vetWebhook(c echo.Context, before, after catalog.Notices) error {
	if after.Webhook == "" || after.Webhook == before.Webhook {
		return nil
	}
	return s.vetHost(c, webhookMember, after.Webhook)
}

// A newNoticeSecretView is a secret that was made just now. Nothing shows it again.
type newNoticeSecretView struct {
	Secret     string `json:"secret"`
	MadeAt     string `json:"made_at"`
	OldSignsTo string `json:"old_signs_until"`
}

// newNoticeSecret serves POST /api/v1/services/{slug}/notices/secret. The secret before it signs beside it for a day.
func (s *Server) newNoticeSecret(c echo.Context) error {
	view, err := s.makeNoticeSecret(c)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, view)
}

func (s *Server) makeNoticeSecret(c echo.Context) (newNoticeSecretView, error) {
	var (
		secret config.Secret
		madeAt time.Time
	)
	_, err := s.edit(c, func(tx pgx.Tx) (edited catalog.Edited, err error) {
		secret, madeAt, edited, err = s.store.EditNoticeSecret(c.Request().Context(), tx, c.Param("slug"), s.editOf(c, nil))
		return edited, err
	})
	if err != nil {
		return newNoticeSecretView{}, err
	}
	return newNoticeSecretView{Secret: secret.Reveal(), MadeAt: timeJSON(madeAt), OldSignsTo: timeJSON(madeAt.Add(catalog.NoticeSecretBeside))}, nil
}

// A letterView is what a provider was told, and what became of that.
type letterView struct {
	ID       uuid.UUID     `json:"id"` // the webhook-id of each message of it
	Kind     letter.Kind   `json:"kind"`
	At       string        `json:"at"`
	Data     letter.Data   `json:"data"`
	Channels []sendingView `json:"channels"` // those that the listing named at the time
}

// A sendingView is what became of a letter by one channel.
type sendingView struct {
	Channel  letter.Channel `json:"channel"`
	State    string         `json:"state"` // sent, waiting or given_up
	Attempts int            `json:"attempts"`
	Status   int            `json:"status,omitempty"` // of the answer to the last attempt
	Error    string         `json:"error,omitempty"`  // of the last attempt
	NextAt   string         `json:"next_at,omitempty"`
	SentAt   string         `json:"sent_at,omitempty"`
	GivenUp  string         `json:"given_up_at,omitempty"`
}

func (s *Server) letterViewOf(l letter.Logged) letterView {
	v := letterView{ID: l.ID, Kind: l.Kind, At: timeJSON(l.At), Data: letter.DataOf(l.Letter, s.publicURL), Channels: make([]sendingView, 0, len(l.Sendings))}
	for _, x := range l.Sendings {
		one := sendingView{Channel: x.Channel, State: "waiting", Attempts: x.Attempts, Status: x.Status, Error: x.Error, NextAt: timeJSON(x.NextAt),
			SentAt: timeJSON(x.SentAt), GivenUp: timeJSON(x.GivenUp)}
		switch {
		case !x.SentAt.IsZero():
			one.State = "sent"
		case !x.GivenUp.IsZero():
			one.State = "given_up"
		}
		v.Channels = append(v.Channels, one)
	}
	return v
}

// listLetters serves GET /api/v1/services/{slug}/notices, the newest first. The cursor is the id of the last one that was shown.
func (s *Server) listLetters(c echo.Context) error {
	page, err := readPage(c)
	if err != nil {
		return err
	}
	before, err := page.before()
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	service, err := s.store.Find(ctx, s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	letters, err := letter.Store{}.List(ctx, s.db, service.ID, before, page.limit+1)
	if err != nil {
		return err
	}
	letters, next := cut(letters, page.limit, func(x letter.Logged) uuid.UUID { return x.ID })
	views := make([]letterView, 0, len(letters))
	for _, l := range letters {
		views = append(views, s.letterViewOf(l))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}

// sendLetterAgain serves POST /api/v1/services/{slug}/notices/{id}/resend: by the channels by which it failed, and by no other.
func (s *Server) sendLetterAgain(c echo.Context) error {
	again, err := s.sendAgain(c)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusAccepted, typeJSON, s.letterViewOf(again))
}

func (s *Server) sendAgain(c echo.Context) (letter.Logged, error) {
	id, err := idParam(c)
	if err != nil {
		return letter.Logged{}, err
	}
	ctx := c.Request().Context()
	service, err := s.store.Find(ctx, s.db, c.Param("slug"))
	if err != nil {
		return letter.Logged{}, err
	}
	again, err := letter.Store{}.Again(ctx, s.db, service.ID, id)
	switch {
	case errors.Is(err, letter.ErrNone):
		return letter.Logged{}, refusal.New(call.NotFound, "the service has no such notice")
	case errors.Is(err, letter.ErrNothingFailed):
		return letter.Logged{}, refusal.New(call.Conflict, "no channel of this notice has failed: each has taken it, or was not asked yet")
	}
	return again, err
}
