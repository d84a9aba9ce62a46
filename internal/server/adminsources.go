package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/shopspring/decimal"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/refusal"
	"market/internal/source"
)

var adminSourcesTemplate = adminTemplate("sources")

// A sourcesPage says how everything stands that can refuse us.
type sourcesPage struct {
	frame
	Says string // how many there are, and how many of them are out
	Out  bool   // some are
	Rows []sourceOnPage
}

type sourceOnPage struct {
	Key, Name, Anchor, What string
	State                   badge
	Reasons                 []reasonOnPage
	Tried                   string // who said that it is topped up, where nothing has tested that yet
	Bar                     *useBar
	Facts                   []sourceFact
	Link                    string // where it is topped up
	Button                  string // what somebody says who has it tried before its window ends; empty where that changes nothing
	Form                    string
}

type reasonOnPage struct{ Words, Tone string }

type sourceFact struct{ Name, Value, Note string }

// A useBar is what was used of a cap, in thousandths of its width.
type useBar struct {
	Used, Cap, Busiest int64
	Capped, Busy       bool // the cap, or the busiest day, has a mark
	Tone               string
	Says               string // the same in words
}

// adminSources serves GET /admin/sources.
func (s *Server) adminSources(c echo.Context) error {
	ctx := c.Request().Context()
	read, err := s.readSources(ctx)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(read.standings))
	for _, st := range read.standings {
		names = append(names, st.Source.Name)
	}
	tried, err := audit.Store{}.Latest(ctx, s.db, audit.KindSource, names)
	if err != nil {
		return err
	}
	page := sourcesPage{frame: s.adminFrame(c, "sources")}
	out := len(read.out())
	for _, st := range read.standings {
		row := read.onPage(st)
		row.Form = page.Admin.Form
		if e, said := tried[st.Source.Name]; said && !st.ExhaustedAt.IsZero() && e.At.After(st.ExhaustedAt) {
			row.Tried = fmt.Sprintf("%s said at %s: %s", upperFirst(plain(e.By)), humanTime(e.At), brief(e.Reason, 500))
		}
		page.Rows = append(page.Rows, row)
	}
	page.Out = out > 0
	page.Says = plural(len(page.Rows), "source", "sources") + ", none of them out."
	if page.Out {
		page.Says = fmt.Sprintf("%s of %s out. What waits for one is kept, and goes on when it works.", count(out), plural(len(page.Rows), "source is", "sources are"))
	}
	return s.writePage(c, http.StatusOK, adminSourcesTemplate, page)
}

// adminTry serves POST /admin/sources: somebody says that a source is topped up.
func (s *Server) adminTry(c echo.Context) error {
	form, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	name := form.Get("source")
	_, err = s.try(c, name, toppedUp)
	if no, refused := errors.AsType[*refusal.Error](err); refused && no.Reason == call.Conflict {
		return s.writeAdminProblem(c, statusFor(no.Reason, false), "There is nothing to try", plain(upperFirst(no.Detail)))
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/admin/sources#"+anchorOf(name))
}

// anchorOf is a source's place on the page.
func anchorOf(name string) string { return "source-" + url.PathEscape(name) }

// runsOutWords say how a source runs out.
var runsOutWords = map[source.RunsOut]string{
	source.Rate: "limits how fast it is asked", source.Daily: "has a quota of the day, which is there again at 00:00 UTC", source.Prepaid: "has a balance that is topped up",
}

// kindWords say what a source is for.
var kindWords = map[source.Kind]string{
	source.KindFacilitator: "Facilitator: settles payments and refunds", source.KindRPC: "Node of a chain: reads and sends transactions",
	source.KindMail: "Mail relay: carries notices", source.KindWebhook: "Webhook of the operator: takes notices",
}

func (r sourcesRead) onPage(st source.Standing) sourceOnPage {
	v := r.viewOf(st)
	row := sourceOnPage{Key: v.Name, Name: plain(v.Name), Anchor: anchorOf(v.Name), State: sourceBadges[v.State],
		What: kindWords[st.Source.Kind] + "; " + runsOutWords[st.Source.RunsOut] + ".", Bar: useBarOf(st), Link: moneyLink(st.Source.BudgetURL)}
	if !st.ExhaustedAt.IsZero() && st.RetryAt.After(st.At) {
		row.Button = "I have topped it up, try now"
		if st.Why == source.Denied {
			row.Button = "I have corrected it, try now"
		}
	}
	for _, against := range v.Reasons {
		row.Reasons = append(row.Reasons, reasonOnPage{Words: against.Words, Tone: sourceBadges[against.Why].Tone})
	}
	add := func(name, value, note string) {
		row.Facts = append(row.Facts, sourceFact{Name: name, Value: value, Note: note})
	}
	add("Let through today", count(int(v.Used)), "")
	done := "nothing was held back"
	if v.Denied > 0 {
		done = fmt.Sprintf("%s were not let through", count(int(v.Denied)))
	}
	add("Asked for today", count(int(v.Asked)), done)
	if v.Cap == nil {
		add("Cap of today", "none", "")
	} else {
		add("Cap of today", count(int(*v.Cap)), "")
	}
	if v.BusiestDay != nil {
		add("Busiest of 7 days", count(int(v.Busiest)), "on "+*v.BusiestDay)
	}
	if v.CostToday != nil {
		add("Cost today, about", "$"+inCents(st.Source.UnitUSD.Mul(decimal.NewFromInt(st.Used))), "$"+*v.UnitUSD+" a unit")
	}
	worked := "never"
	if !st.LastSuccessAt.IsZero() {
		worked = humanTime(st.LastSuccessAt)
	}
	add("Worked last", worked, "")
	if !st.RefusedAt.IsZero() {
		add("Refused last", humanTime(st.RefusedAt), plain(st.Said))
	}
	if st.ExhaustedAt.IsZero() && !st.OutSince.IsZero() {
		add("Works again", "yes", "its notice ends when it has refused nothing for a while")
	}
	if v.Waiting > 0 {
		add("Waits for it", plural(v.Waiting, "refund", "refunds"), "")
	}
	if n, told := r.notices[v.Name]; told {
		sent := "not sent yet, raised at " + humanTime(n.RaisedAt)
		if n.SentAt != nil {
			sent = "sent by " + channelWords[n.Channel] + " at " + humanTime(*n.SentAt)
		}
		add("Notice", strings.ReplaceAll(string(n.Kind), "_", " "), sent)
	}
	return row
}

// inCents is an amount of US dollars as people write it: with cents, and with more where it has more.
func inCents(usd decimal.Decimal) string {
	if whole := usd.Round(2); whole.Equal(usd) {
		return whole.StringFixed(2)
	}
	return usd.String()
}

// useBarOf draws what was used of the cap; nil where there is none, for then there is nothing to be full.
func useBarOf(st source.Standing) *useBar {
	if st.Cap <= 0 {
		return nil
	}
	whole := max(st.Cap, st.Used, st.Busiest, 1)
	at := func(n int64) int64 { return int64(float64(max(0, n)) / float64(whole) * 1000) }
	bar := &useBar{Used: at(st.Used), Cap: min(at(st.Cap), 996), Busiest: min(at(st.Busiest), 996), Capped: st.Cap < whole, Busy: st.Busiest > 0, Tone: "good",
		Says: fmt.Sprintf("%s of %s units of today are used (%s).", count(int(st.Used)), count(int(st.Cap)), percent(float64(st.Used)/float64(st.Cap)))}
	if bar.Busy {
		bar.Says += fmt.Sprintf(" The mark is the busiest of the seven days before: %s.", count(int(st.Busiest)))
	}
	switch {
	case guarded(st):
		bar.Tone = "bad"
	case float64(st.Used) >= 0.9*float64(st.Cap):
		bar.Tone = "wait"
	}
	return bar
}

// moneyLink is an address of the configuration that a page may lead to; empty where it is none of the web.
func moneyLink(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return u.String()
}
