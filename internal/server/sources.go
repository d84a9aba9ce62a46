package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/notify"
	"market/internal/refusal"
	"market/internal/source"
)

// Kinds of notices of which the subject is a source, the gravest first.
var sourceNotices = []notify.Kind{notify.SourceOut, notify.ChannelOut, notify.GuardReached}

// toppedUp is the reason of whoever gives none: it is what the buttons say.
const toppedUp = "it is topped up, or corrected"

// A sourceView is how one source stands. Numbers are units of today.
type sourceView struct {
	Name          string         `json:"name"`
	Kind          string         `json:"kind"`
	Metered       bool           `json:"metered"`
	RunsOut       string         `json:"runs_out"`
	State         sourceState    `json:"state"`
	Reasons       []sourceReason `json:"reasons"`
	Used          int64          `json:"used"`
	Asked         int64          `json:"asked"`
	Denied        int64          `json:"denied"`
	Cap           *int64         `json:"cap"` // null: there is none
	Busiest       int64          `json:"busiest"`
	BusiestDay    *string        `json:"busiest_day"`
	ExhaustedAt   *string        `json:"exhausted_at"`
	RetryAt       *string        `json:"retry_at"`
	NextRequestAt *string        `json:"next_request_at"`
	RefusedAt     *string        `json:"refused_at"`
	LastSuccessAt *string        `json:"last_success_at"`
	UnitUSD       *string        `json:"unit_usd"`
	CostToday     *string        `json:"cost_today_usd"` // null: what a unit costs is not known
	BudgetURL     *string        `json:"budget_url"`
	Waiting       int            `json:"waiting"` // refunds
	Notice        *sourceNotice  `json:"notice"`
}

// A sourceNotice is what the operator was told of a source and is not over yet.
type sourceNotice struct {
	ID       uuid.UUID   `json:"id"`
	Kind     notify.Kind `json:"kind"`
	RaisedAt string      `json:"raised_at"`
	Channel  *string     `json:"channel"` // that took it; null: none did yet
	SentAt   *string     `json:"sent_at"`
}

func sourceNoticeOf(n notify.Told) *sourceNotice {
	view := &sourceNotice{ID: n.ID, Kind: n.Kind, RaisedAt: timeJSON(n.RaisedAt)}
	if n.SentAt != nil {
		view.Channel, view.SentAt = &n.Channel, timeOrNull(*n.SentAt)
	}
	return view
}

// A sourceTried is what came of having a source tried.
type sourceTried struct {
	Source sourceView `json:"source"`
	At     string     `json:"at"`
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	Effect string     `json:"effect"`
}

// sourcesRead is everything that is known of the sources.
type sourcesRead struct {
	standings []source.Standing // those that are out first, then as they are configured
	notices   map[string]notify.Told
	waiting   map[string]int
}

// readSources reads how all sources stand. They come from configuration, so they are few and one answer has all.
func (s *Server) readSources(ctx context.Context) (read sourcesRead, err error) {
	if s.sources == nil {
		return read, nil
	}
	if read.standings, err = s.sources.Standings(ctx, s.db); err != nil {
		return read, err
	}
	gravity := func(st source.Standing) int { return slices.Index(sourceStates, stateOf(reasonsOf(st))) }
	slices.SortStableFunc(read.standings, func(a, b source.Standing) int { return gravity(a) - gravity(b) })
	read.notices = map[string]notify.Told{}
	told, err := notify.Store{}.ToldOf(ctx, s.db, sourceNotices)
	if err != nil {
		return read, err
	}
	for _, n := range told {
		if before, another := read.notices[n.Subject]; !another || slices.Index(sourceNotices, n.Kind) < slices.Index(sourceNotices, before.Kind) {
			read.notices[n.Subject] = n
		}
	}
	if s.waiting != nil {
		read.waiting, err = s.waiting(ctx, s.db)
	}
	return read, err
}

// out are the sources that work waits for, or goes around.
func (r sourcesRead) out() (out []source.Standing) {
	for _, st := range r.standings {
		if stateOf(reasonsOf(st)).out() {
			out = append(out, st)
		}
	}
	return out
}

func (r sourcesRead) viewOf(st source.Standing) sourceView {
	v := sourceView{
		Name: st.Source.Name, Kind: st.Source.Kind.String(), Metered: st.Source.Metered, RunsOut: st.Source.RunsOut.String(), Reasons: reasonsOf(st),
		Used: st.Used, Denied: st.Denied, Asked: st.Used + st.Denied, Busiest: st.Busiest, ExhaustedAt: timeOrNull(st.ExhaustedAt), RetryAt: timeOrNull(st.RetryAt),
		NextRequestAt: timeOrNull(st.NextRequestAt), RefusedAt: timeOrNull(st.RefusedAt), LastSuccessAt: timeOrNull(st.LastSuccessAt), Waiting: r.waiting[st.Source.Name],
	}
	v.State = stateOf(v.Reasons)
	if st.Cap > 0 {
		v.Cap = &st.Cap
	}
	if !st.BusiestDay.IsZero() {
		day := st.BusiestDay.UTC().Format("2006-01-02")
		v.BusiestDay = &day
	}
	if unit := st.Source.UnitUSD; unit.IsPositive() {
		one, all := unit.String(), unit.Mul(decimal.NewFromInt(st.Used)).String()
		v.UnitUSD, v.CostToday = &one, &all
	}
	if st.Source.BudgetURL != "" {
		v.BudgetURL = &st.Source.BudgetURL
	}
	if n, told := r.notices[st.Source.Name]; told {
		v.Notice = sourceNoticeOf(n)
	}
	return v
}

// listSources serves GET /api/v1/admin/sources.
func (s *Server) listSources(c echo.Context) error {
	read, err := s.readSources(c.Request().Context())
	if err != nil {
		return err
	}
	views := make([]sourceView, 0, len(read.standings))
	for _, st := range read.standings {
		views = append(views, read.viewOf(st))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views})
}

// trySource serves POST /api/v1/admin/sources/{name}/try. The name has slashes, which may be escaped.
func (s *Server) trySource(c echo.Context) error {
	name, ours := strings.CutSuffix(c.Param("*"), "/try")
	name, err := url.PathUnescape(name)
	if !ours || err != nil {
		return refusal.New(call.NotFound, "there is nothing at this address: /api/v1/admin/sources/{name}/try is")
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	reason := toppedUp
	if len(body) > 0 {
		if reason, err = catalog.ParseReason(body); err != nil {
			return err
		}
	}
	tried, err := s.try(c, name, reason)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, tried)
}

func (s *Server) try(c echo.Context, name, reason string) (sourceTried, error) {
	if s.sources == nil {
		return sourceTried{}, refusal.New(call.NotFound, "there is no source with this name")
	}
	ctx := c.Request().Context()
	done, err := delivery.TrySource(ctx, s.db, s.sources, name, authorOf(c), reason)
	if err != nil {
		return sourceTried{}, err
	}
	read, err := s.readSources(ctx)
	if err != nil {
		return sourceTried{}, err
	}
	view := read.viewOf(done.Standing)
	return sourceTried{Source: view, At: timeJSON(done.Entry.At), By: done.Entry.By, Reason: done.Entry.Reason, Effect: triedWords(view)}, nil
}

// triedWords says what happens next.
func triedWords(v sourceView) string {
	text := "The next request tests it."
	if v.Waiting > 0 {
		text += " " + plural(v.Waiting, "refund that waits for it is", "refunds that wait for it are") + " due now."
	}
	text += " Where it still refuses, nobody is charged and its window begins anew."
	for _, r := range v.Reasons {
		if r.Why == sourceGuarded {
			text += fmt.Sprintf(" Our own guard holds all the same. %s", r.Words)
		}
	}
	return text
}
