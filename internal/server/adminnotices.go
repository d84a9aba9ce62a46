package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/notify"
	"market/internal/refusal"
)

var adminNoticesTemplate = adminTemplate("notices")

// A noticesPage lists what the operator has to know, the newest first, and how it was told.
type noticesPage struct {
	frame
	Told        string // by which channels the operator is told
	Silent      bool   // by none
	Form        string
	Rows        []noticeOnPage
	First, Next string // addresses of pages; empty where there is none
	Paged       bool
}

type noticeOnPage struct {
	Anchor, What, Effect string
	State                badge
	Looks                []fact // where to look; with a link where it is a page of ours
	Facts                []fact
}

// channelWords name the channels in a sentence.
var channelWords = map[string]string{"mail": "mail", "webhook": "the webhook"}

func (s *Server) adminNotices(c echo.Context) error {
	notices, list, next, err := s.readNotices(c)
	if err != nil {
		return err
	}
	page := noticesPage{frame: s.adminFrame(c, "notices"), Paged: list.cursor != ""}
	page.Form = page.Admin.Form
	page.First, page.Next = pagesOf("/admin/notices", list, next)
	var words []string
	for _, name := range s.noticeChannels() {
		words = append(words, channelWords[name])
	}
	page.Silent = len(words) == 0
	page.Told = "You are told by " + strings.Join(words, ", and where that does not take a notice by ") + "."
	if page.Silent {
		page.Told = "Nobody is told of them: neither mail nor a webhook is configured (MARKET_SMTP_URL with MARKET_OPERATOR_EMAIL, or MARKET_OPERATOR_WEBHOOK)."
	}
	for _, n := range notices {
		page.Rows = append(page.Rows, noticeOnPageOf(n))
	}
	return s.writePage(c, http.StatusOK, adminNoticesTemplate, page)
}

// adminTestNotices serves POST /admin/notices: it sends a test, which then stands first in the list with what became of it.
func (s *Server) adminTestNotices(c echo.Context) error {
	if _, ok, err := s.formOf(c); !ok {
		return err
	}
	tested, err := s.testChannel(c.Request().Context(), "")
	if no, refused := errors.AsType[*refusal.Error](err); refused && no.Reason == call.Conflict {
		return s.writeAdminProblem(c, statusFor(no.Reason, false), "There is nothing to send it by", plain(upperFirst(no.Detail)))
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/admin/notices#notice-"+tested.Notice.String())
}

// noticeBadges say where a notice stands.
var noticeBadges = map[noticeState]badge{
	noticeOpen: {"holds now", "bad"}, noticeCalm: {"just over", "wait"}, noticeSettled: {"over", "good"}, noticeGivenUp: {"nobody could be told", "bad"},
}

func noticeOnPageOf(n notify.Listed) noticeOnPage {
	row := noticeOnPage{Anchor: "notice-" + n.ID.String(), What: brief(upperFirst(n.Outage.What), 1000), Effect: brief(ended(upperFirst(n.Outage.Effect)), 1000), State: noticeBadges[noticeStateOf(n)]}
	if n.Kind == notify.Test {
		row.State = badge{"test", "good"}
		if noticeStateOf(n) == noticeGivenUp {
			row.State = badge{"test, taken by nobody", "bad"}
		}
	}
	for look := range strings.SplitSeq(n.Outage.Look, "\n") {
		switch look = strings.TrimSpace(plain(look)); {
		case look == "":
		case strings.HasPrefix(look, "/") && !strings.HasPrefix(look, "//"):
			row.Looks = append(row.Looks, fact{Value: look, Link: look})
		default:
			row.Looks = append(row.Looks, fact{Value: look, Link: moneyLink(look)})
		}
	}
	add := func(name, value string) { row.Facts = append(row.Facts, fact{Name: name, Value: value}) }
	about := strings.ReplaceAll(string(n.Kind), "_", " ")
	if n.Subject != "" && n.Kind != notify.Test {
		about += ": " + n.Subject
	}
	add("About", brief(about, 300))
	add("Noticed", humanTime(n.RaisedAt))
	if !n.CalmSince.IsZero() && n.Kind != notify.Test {
		add("Over since", humanTime(n.CalmSince))
	}
	for _, m := range n.Messages {
		name := "Told"
		if m.Phase == notify.Recovered {
			name = "Told that it is over"
		}
		add(name, toldWords(m))
	}
	if len(n.Messages) == 0 {
		add("Told", "only in the log: it is older than the channels")
	}
	return row
}

// toldWords say how the sending of a message went.
func toldWords(m notify.Sending) string {
	var words string
	switch {
	case !m.SentAt.IsZero():
		words = "by " + channelWords[m.Channel] + " at " + humanTime(m.SentAt)
	case !m.GivenUpAt.IsZero():
		words = "by nobody, given up at " + humanTime(m.GivenUpAt)
	case !m.NextAt.IsZero():
		words = "not yet, next try at " + humanTime(m.NextAt)
	}
	switch {
	case m.LastError == "":
	case m.Attempts > 1:
		words += fmt.Sprintf("; %s attempts failed before, the last one with: %s", count(m.Attempts), brief(m.LastError, 700))
	default:
		words += "; what came of it last: " + brief(m.LastError, 700)
	}
	return words
}

// ended has a full stop at its end.
func ended(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
