package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/notify"
	"market/internal/refusal"
)

// Notices takes notices to the operator.
type Notices interface {
	Channels() []string
	Test(ctx context.Context, channel string) (notify.Tested, error)
}

// A noticeView is what the operator has to know, and how it was told.
type noticeView struct {
	ID       uuid.UUID     `json:"id"`
	Kind     notify.Kind   `json:"kind"`
	Subject  string        `json:"subject"` // of the kind; empty where there is one of that kind only
	State    noticeState   `json:"state"`
	What     string        `json:"what"`
	Effect   string        `json:"effect"`
	Look     []string      `json:"look"`
	Raised   string        `json:"raised_at"`
	Calm     *string       `json:"over_since"` // null: it holds
	Settled  *string       `json:"settled_at"` // null: it is open
	Messages []messageView `json:"messages"`
}

// A messageView is how the sending of a message went.
type messageView struct {
	Phase    notify.Phase `json:"phase"`
	Channel  *string      `json:"channel"` // that took it; null: none did
	Sent     *string      `json:"sent_at"`
	Attempts int          `json:"attempts"` // that went wrong
	Error    *string      `json:"last_error"`
	Next     *string      `json:"next_at"` // null: it is not tried any more
	GivenUp  *string      `json:"given_up_at"`
}

// A noticeState says where a notice stands.
type noticeState string

const (
	noticeOpen    noticeState = "open"     // it holds
	noticeCalm    noticeState = "calm"     // it is over, but not for long enough to be told so
	noticeSettled noticeState = "settled"  // it is over
	noticeGivenUp noticeState = "given_up" // nobody could be told; whether it holds is not known any more
)

func noticeStateOf(n notify.Listed) noticeState {
	switch {
	case slices.ContainsFunc(n.Messages, func(m notify.Sending) bool { return m.Phase == notify.Raised && !m.GivenUpAt.IsZero() }):
		return noticeGivenUp
	case !n.SettledAt.IsZero():
		return noticeSettled
	case !n.CalmSince.IsZero():
		return noticeCalm
	}
	return noticeOpen
}

func noticeViewOf(n notify.Listed) noticeView {
	v := noticeView{ID: n.ID, Kind: n.Kind, Subject: n.Subject, State: noticeStateOf(n), What: n.Outage.What, Effect: n.Outage.Effect, Look: []string{},
		Raised: timeJSON(n.RaisedAt), Calm: timeOrNull(n.CalmSince), Settled: timeOrNull(n.SettledAt), Messages: []messageView{}}
	for line := range strings.SplitSeq(n.Outage.Look, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			v.Look = append(v.Look, line)
		}
	}
	for _, m := range n.Messages {
		v.Messages = append(v.Messages, messageView{Phase: m.Phase, Channel: orNull(m.Channel), Sent: timeOrNull(m.SentAt), Attempts: m.Attempts,
			Error: orNull(m.LastError), Next: timeOrNull(m.NextAt), GivenUp: timeOrNull(m.GivenUpAt)})
	}
	return v
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// listNotices serves GET /api/v1/admin/notices, the newest first.
func (s *Server) listNotices(c echo.Context) error {
	notices, _, next, err := s.readNotices(c)
	if err != nil {
		return err
	}
	views := make([]noticeView, 0, len(notices))
	for _, n := range notices {
		views = append(views, noticeViewOf(n))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "channels": s.noticeChannels(), "next_cursor": next})
}

func (s *Server) noticeChannels() []string {
	if s.notices == nil {
		return []string{}
	}
	return append([]string{}, s.notices.Channels()...)
}

// readNotices reads the page of notices that was asked for. The cursor is the id of the last one that was shown.
func (s *Server) readNotices(c echo.Context) ([]notify.Listed, page, string, error) {
	list, err := readPage(c)
	if err != nil {
		return nil, page{}, "", err
	}
	before, err := list.before()
	if err != nil {
		return nil, page{}, "", err
	}
	notices, err := notify.Store{}.List(c.Request().Context(), s.db, before, list.limit+1)
	if err != nil {
		return nil, page{}, "", err
	}
	notices, next := cut(notices, list.limit, func(x notify.Listed) uuid.UUID { return x.ID })
	return notices, list, next, nil
}

// A testView is what became of a test message.
type testView struct {
	Notice  uuid.UUID  `json:"notice"`
	Channel *string    `json:"channel"` // that took it; null: none did
	Failed  []failView `json:"failed"`  // the channels that were asked before and did not
}

type failView struct {
	Channel string `json:"channel"`
	Error   string `json:"error"`
}

// testNotices serves POST /api/v1/admin/notices/test. The body may name a channel.
func (s *Server) testNotices(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	channel, err := channelIn(body)
	if err != nil {
		return err
	}
	tested, err := s.testChannel(c.Request().Context(), channel)
	if err != nil {
		return err
	}
	view := testView{Notice: tested.Notice, Channel: orNull(tested.Channel), Failed: []failView{}}
	for _, f := range tested.Failed {
		view.Failed = append(view.Failed, failView{Channel: f.Channel, Error: f.Why})
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, view)
}

// channelIn reads which channel a test is for; empty: whichever takes it.
func channelIn(body []byte) (string, error) {
	if len(body) == 0 {
		return "", nil
	}
	var asked struct {
		Channel *string `json:"channel"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil || decoder.More() {
		return "", refusal.New(call.InvalidRequest, `/ expected {} or {"channel":"mail"}`)
	}
	if asked.Channel == nil {
		return "", nil
	}
	if *asked.Channel == "" {
		return "", refusal.New(call.InvalidRequest, "/channel is empty: leave it out to have the first one take it that does")
	}
	return *asked.Channel, nil
}

// testChannel sends a test. That there is nothing to send it by is a conflict with how the server was started.
func (s *Server) testChannel(ctx context.Context, channel string) (notify.Tested, error) {
	no := refusal.New(call.Conflict, "no channel is configured: set MARKET_SMTP_URL with MARKET_OPERATOR_EMAIL, or MARKET_OPERATOR_WEBHOOK, and restart")
	if len(s.noticeChannels()) == 0 {
		return notify.Tested{}, no
	}
	tested, err := s.notices.Test(ctx, channel)
	if errors.Is(err, notify.ErrNoChannel) {
		return notify.Tested{}, refusal.New(call.Conflict, "no such channel is configured; there is: %s", strings.Join(s.noticeChannels(), ", "))
	}
	return tested, err
}
