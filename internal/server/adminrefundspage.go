package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/refund"
	"market/internal/refusal"
)

const adminRefundsPath = adminHome + "/refunds"

var adminRefundsTemplate = adminTemplate("refunds")

// An adminRefundsPage shows the money that is owed to callers, and lets an admin decide about what waits for one.
type adminRefundsPage struct {
	frame
	Done, Conflict string
	State          refund.State
	States         []choice
	Rows           []refundOnPage
	Reviews        []reviewOnPage
	MoreReviews    string // how many are shown, where there are more
	First, Next    string // addresses of pages; empty where there is none
	Paged          bool
}

type refundOnPage struct {
	ID, Amount, Network, To string
	State                   badge
	Why                     string
	Owed, Again             *moment
	Attempts                string
	WaitsFor                string
	Transaction, Link       string
	Parked                  bool
	Form, Kept, Problem     string // the form of a parked one: what was typed, and what is wrong with it
	Open                    bool
}

type reviewOnPage struct {
	ID, Service, Request, Amount, Network, Payer string
	State                                        badge
	At                                           *moment
	Transaction, Link                            string
	Forms                                        []reviewForm
	Waits                                        string // why nothing can be decided yet
}

// What an admin can decide on this page.
const (
	actRetry     action = "retry"
	actGiveBack  action = "refund"
	actLetServed action = "serve"
)

var moneyDone = map[action]string{
	actRetry:     "The refund is tried again now.",
	actGiveBack:  "The call is refunded. What was paid back before the restore is found on the chain, and not paid twice.",
	actLetServed: "The call goes on: its caller is served with the same payment, or refunded.",
}

// A moneyAsked is what a form asked for that was not done. The zero value is that none was sent.
type moneyAsked struct {
	action       action
	call, reason string
	notDone
}

// reviewsShown is how many calls under review stand on the page: they come of a restore, and go.
const reviewsShown = 50

// adminRefunds serves GET /admin/refunds.
func (s *Server) adminRefunds(c echo.Context) error {
	return s.writeRefunds(c, http.StatusOK, moneyAsked{})
}

func (s *Server) writeRefunds(c echo.Context, status int, asked moneyAsked) error {
	list, err := readPage(c, "state", "done")
	if err != nil {
		return err
	}
	before, err := list.before()
	if err != nil {
		return err
	}
	state := refund.State(list.more.Get("state"))
	if state == "" {
		state = refund.StateParked
	}
	if !slices.Contains(refund.States(), state) {
		return badParameter("state", "is no state of a refund")
	}
	ctx := c.Request().Context()
	refunds, err := refund.Store{}.List(ctx, s.db, state, before, list.limit+1)
	if err != nil {
		return err
	}
	reviews, err := delivery.InReview(ctx, s.db, uuid.UUID{}, reviewsShown+1)
	if err != nil {
		return err
	}
	refunds, next := cut(refunds, list.limit, func(r refund.Refund) uuid.UUID { return r.Payment.Call })
	page := adminRefundsPage{frame: s.adminFrame(c, "refunds"), Conflict: asked.conflict, State: state, Paged: list.cursor != "", Done: moneyDone[action(list.more.Get("done"))]}
	list.more.Del("done")
	page.First, page.Next = pagesOf(adminRefundsPath, list, next)
	for _, each := range []refund.State{refund.StateParked, refund.StateOwed, refund.StateSent, refund.StateConfirmed, refund.StateVoid} {
		page.States = append(page.States, choice{ID: string(each), Name: string(each), Chosen: each == state})
	}
	for _, r := range refunds {
		page.Rows = append(page.Rows, s.refundOnPageOf(r, page.Admin.Form, asked))
	}
	if len(reviews) > reviewsShown {
		reviews, page.MoreReviews = reviews[:reviewsShown], count(reviewsShown)
	}
	for _, r := range reviews {
		page.Reviews = append(page.Reviews, s.reviewOnPageOf(r, page.Admin.Form, asked))
	}
	return s.writePage(c, status, adminRefundsTemplate, page)
}

// stateTones are how a refund's state looks to an admin.
var stateTones = map[refund.State]string{refund.StateParked: "bad", refund.StateOwed: "wait", refund.StateSent: "wait", refund.StateConfirmed: "good"}

func (s *Server) refundOnPageOf(r refund.Refund, form string, asked moneyAsked) refundOnPage {
	v := s.adminRefundViewOf(r)
	row := refundOnPage{ID: v.Call.String(), Amount: amountText(v.Money), Network: s.networkText(v.Network), To: v.To, State: badge{string(r.State), stateTones[r.State]},
		Why: plain(r.Why), Owed: momentOf(r.OwedAt), Attempts: count(r.Attempts), WaitsFor: plain(r.WaitsFor), Transaction: v.Transaction,
		Link: s.explorerLink(v.Network, v.Transaction), Parked: r.State == refund.StateParked, Form: form}
	if v.NextAt != "" {
		row.Again = momentOf(r.NextAt)
	}
	if asked.problem != "" && asked.action == actRetry && asked.call == row.ID {
		row.Open, row.Kept, row.Problem = true, plain(asked.reason), asked.problem
	}
	return row
}

func (s *Server) reviewOnPageOf(r delivery.Record, form string, asked moneyAsked) reviewOnPage {
	row := reviewOnPage{ID: r.Call.String(), Service: r.Service, Request: brief(r.Method+" "+r.Path, 80), Network: s.networkText(r.Network), Payer: r.Payer.Hex(),
		Amount: amountText(s.money(r.Network, r.Asset, r.Amount)), State: badge{strings.ReplaceAll(string(r.State), "_", " "), "wait"}, At: momentOf(r.Created)}
	if r.Proved {
		row.Transaction, row.Link = hashJSON(r.Transaction), s.explorerLink(r.Network, hashJSON(r.Transaction))
	}
	giveBack := reviewForm{Action: actGiveBack, Title: "Refund it …", Button: "Refund the call",
		Does: "The call has failed by our doing, and the whole price goes back to the wallet that paid. If it went back before the restore, that transfer is found on the chain and confirms " +
			"the refund; nothing is sent twice."}
	serve := reviewForm{Action: actLetServed, Title: "Let it be served …", Button: "Let it be served", Bad: true,
		Does: "The call goes on where it stands: its caller is served if it sends the same payment again within two minutes, and refunded after that. Say so only if the service had not " +
			"answered before the restore. The chain is asked first, and where it shows a refund nothing is changed."}
	switch r.State {
	case call.Settled:
		row.Forms = []reviewForm{giveBack, serve}
	case call.Asked:
		row.Forms = []reviewForm{giveBack}
	default:
		row.Waits = "The chain is being asked whether it was paid for at all. If it was not, its review ends by itself."
	}
	for i := range row.Forms {
		f := &row.Forms[i]
		f.Form, f.ID, f.Strike = form, "why-"+string(f.Action)+"-"+row.ID, row.ID
		if asked.problem != "" && asked.action == f.Action && asked.call == row.ID {
			f.Kept, f.Problem = plain(asked.reason), asked.problem
		}
	}
	return row
}

// adminDecideMoney serves POST /admin/refunds: one decision about a refund or about a call under review.
func (s *Server) adminDecideMoney(c echo.Context) error {
	form, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	asked := moneyAsked{action: action(form.Get("action")), call: form.Get("call"), reason: strings.Join(strings.Fields(form.Get("reason")), " ")}
	err = s.decideMoney(c, asked)
	if err == nil {
		return c.Redirect(http.StatusSeeOther, adminRefundsPath+"?"+url.Values{"done": {string(asked.action)}}.Encode())
	}
	status, shown := asked.refused(err)
	if !shown {
		return err
	}
	return s.writeRefunds(c, status, asked)
}

// decideMoney does what a form asks for, as the API would.
func (s *Server) decideMoney(c echo.Context, asked moneyAsked) error {
	id, err := uuid.Parse(asked.call)
	if _, known := moneyDone[asked.action]; err != nil || !known {
		return refusal.New(call.NotFound, "there is no such decision")
	}
	reason, err := reasonOf(&asked.reason)
	if err != nil {
		return err
	}
	ctx, by := c.Request().Context(), authorOf(c)
	switch asked.action {
	case actRetry:
		_, err = delivery.RetryRefund(ctx, s.db, id, by, reason)
	case actGiveBack:
		_, err = s.path.RefundReviewed(ctx, id, by, reason)
	default:
		_, err = s.path.ServeReviewed(ctx, id, by, reason)
	}
	return err
}
