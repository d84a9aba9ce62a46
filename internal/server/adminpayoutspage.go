package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/payout"
	"market/internal/refusal"
)

const adminPayoutsPath = adminHome + "/payouts"

var adminPayoutsTemplate = adminTemplate("payouts")

// An adminPayoutsPage shows the money that is on its way to providers, and lets an admin decide about it.
type adminPayoutsPage struct {
	frame
	Done, Conflict string
	State          payout.State
	States         []choice
	Rows           []adminPayoutOnPage
	First, Next    string // addresses of pages; empty where there is none
	Paged          bool
}

type adminPayoutOnPage struct {
	payoutOnPage
	Account, Treasury, By string
	Attempts              string
	Forms                 []reviewForm
}

// What an admin can decide about a payout; actRetry is that of refunds.
const (
	actHold    action = "hold"
	actRelease action = "release"
	actCancel  action = "cancel"
)

var payoutDone = map[action]string{
	actHold:    "The payout is held: nothing of it is signed or sent until it is released. What was sent before may still arrive.",
	actRelease: "The payout goes on.",
	actRetry:   "The payout is tried again now.",
	actCancel:  "The payout is cancelled. What it would have paid is there for the next one.",
}

// A payoutAsked is what a form asked for that was not done. The zero value is that none was sent.
type payoutAsked struct {
	action         action
	payout, reason string
	notDone
}

// adminPayouts serves GET /admin/payouts.
func (s *Server) adminPayouts(c echo.Context) error {
	return s.writeAdminPayouts(c, http.StatusOK, payoutAsked{})
}

func (s *Server) writeAdminPayouts(c echo.Context, status int, asked payoutAsked) error {
	list, err := readPage(c, "state", "done")
	if err != nil {
		return err
	}
	filter := payout.Filter{State: payout.State(list.more.Get("state"))}
	if filter.State != "" && !slices.Contains(payoutStates, filter.State) {
		return badParameter("state", "is none that a payout can be in")
	}
	if filter.Before, err = list.before(); err != nil {
		return err
	}
	payouts, err := payout.Store{}.List(c.Request().Context(), s.db, filter, list.limit+1)
	if err != nil {
		return err
	}
	payouts, next := cut(payouts, list.limit, payoutID)
	page := adminPayoutsPage{frame: s.adminFrame(c, "payouts"), Conflict: asked.conflict, State: filter.State, Paged: list.cursor != "", Done: payoutDone[action(list.more.Get("done"))]}
	list.more.Del("done")
	page.First, page.Next = pagesOf(adminPayoutsPath, list, next)
	page.States = []choice{{ID: "", Name: "any", Chosen: filter.State == ""}}
	for _, each := range payoutStates {
		page.States = append(page.States, choice{ID: string(each), Name: string(each), Chosen: each == filter.State})
	}
	for _, p := range payouts {
		page.Rows = append(page.Rows, s.adminPayoutOnPageOf(p, page.Admin.Form, asked))
	}
	return s.writePage(c, status, adminPayoutsTemplate, page)
}

// payoutTones are how a payout's state looks to an admin.
var payoutTones = map[payout.State]string{payout.StateParked: "bad", payout.StateOwed: "wait", payout.StateSent: "wait", payout.StateConfirmed: "good"}

func (s *Server) adminPayoutOnPageOf(p payout.Payout, form string, asked payoutAsked) adminPayoutOnPage {
	row := adminPayoutOnPage{payoutOnPage: s.payoutOnPageOf(p), Account: p.Account.String(), Treasury: p.Treasury.Hex(), By: plain(p.MadeBy), Attempts: count(p.Attempts)}
	row.State = badge{string(p.State), payoutTones[p.State]}
	if p.Held {
		row.State = badge{string(p.State) + ", held", "bad"}
	}
	if why := plain(p.Stopped); why != "" && !p.Ended() {
		row.Why = why
	}
	row.Forms = payoutForms(p)
	for i := range row.Forms {
		f := &row.Forms[i]
		f.Form, f.ID, f.Strike = form, "why-"+string(f.Action)+"-"+row.ID, row.ID
		if asked.problem != "" && asked.action == f.Action && asked.payout == row.ID {
			f.Kept, f.Problem = plain(asked.reason), asked.problem
		}
	}
	return row
}

// payoutForms are the decisions that can be made about a payout as it stands.
func payoutForms(p payout.Payout) (forms []reviewForm) {
	if p.Ended() {
		return nil
	}
	if p.Held {
		forms = append(forms, reviewForm{Action: actRelease, Title: "Release it …", Button: "Release the payout", Does: "It goes on where it stands, and is looked at now."})
	} else {
		forms = append(forms, reviewForm{Action: actHold, Title: "Hold it …", Button: "Hold the payout", Bad: true,
			Does: "Nothing of it is signed or sent until it is released, and its account gets no other one. What was sent before may still arrive, and is followed."},
			reviewForm{Action: actRetry, Title: "Try it again …", Button: "Try it again", Does: "It is looked at now, and not when its wait is over. It is never paid twice."})
	}
	if !p.Signed {
		forms = append(forms, reviewForm{Action: actCancel, Title: "Cancel it …", Button: "Cancel the payout", Bad: true,
			Does: "It ends, and what it would have paid is there for the next one. Nothing of it was signed."})
	}
	return forms
}

// adminDecidePayout serves POST /admin/payouts: one decision about a payout, as the API would.
func (s *Server) adminDecidePayout(c echo.Context) error {
	form, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	asked := payoutAsked{action: action(form.Get("action")), payout: form.Get("payout"), reason: strings.Join(strings.Fields(form.Get("reason")), " ")}
	id, err := uuid.Parse(asked.payout)
	decision, known := payoutDecisions[string(asked.action)]
	if err != nil || !known {
		return refusal.New(call.NotFound, "there is no such decision")
	}
	reason, err := reasonOf(&asked.reason)
	if err == nil {
		_, err = s.decideOnPayout(c.Request().Context(), decision, id, authorOf(c), reason)
	}
	if err == nil {
		return c.Redirect(http.StatusSeeOther, adminPayoutsPath+"?"+url.Values{"done": {string(asked.action)}}.Encode())
	}
	status, shown := asked.refused(err)
	if !shown {
		return err
	}
	return s.writeAdminPayouts(c, status, asked)
}
