package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/money"
	"market/internal/payout"
	"market/internal/refusal"
)

const accountEarningsPath = accountHome + "/earnings"

var (
	accountEarningsTemplate = accountTemplate("earnings")
	accountPayoutTemplate   = accountTemplate("payout")
)

// An earningsPage shows a provider what was earned and where that money is, and lets it be drawn.
type earningsPage struct {
	frame
	Done, Conflict string
	Sums           []sumOnPage
	Ended          []endedOnPage
	Days           string
	Rows           []payoutOnPage
	First, Next    string // addresses of pages; empty where there is none
	Paged          bool
	Addresses      []payeeOnPage
	Networks       []choice
	Typed, Problem string // of the form for an address
}

type sumOnPage struct {
	Asset, Network, Contract, NetworkID         string
	Pending, Lost, Available, OnWay, Held, Paid string
	Some                                        bool // something is there to be paid out
}

type endedOnPage struct{ Outcome, Calls string }

type payoutOnPage struct {
	ID, Number, Amount, Network, To string
	State                           badge
	Why                             string
	Made, Confirmed                 *moment
	Transaction, Link               string
}

type payeeOnPage struct {
	Network, Now, Next string
	NextAt             *moment
}

// An earningsAsked is what a form asked for that was not done. The zero value is that none was sent.
type earningsAsked struct {
	network, address string
	notDone
}

// What a provider can ask for on this page.
const (
	actPayOut     action = "pay"
	actSetAddress action = "address"
)

var earningsDone = map[action]string{
	actPayOut:     "A payout is made. It is sent within moments, and final some blocks later.",
	actSetAddress: "The address is set. The first one holds at once; a change waits a day, and until then you can take it back by setting the old one.",
}

// accountEarnings serves GET /account/earnings.
func (s *Server) accountEarnings(c echo.Context) error {
	return s.writeEarnings(c, http.StatusOK, earningsAsked{})
}

func (s *Server) writeEarnings(c echo.Context, status int, asked earningsAsked) error {
	list, err := readPage(c, "done")
	if err != nil {
		return err
	}
	ctx, own := c.Request().Context(), principalOf(c).Account
	filter := payout.Filter{Account: own}
	if filter.Before, err = list.before(); err != nil {
		return err
	}
	payouts, err := payout.Store{}.List(ctx, s.db, filter, list.limit+1)
	if err != nil {
		return err
	}
	sums, err := payout.Store{}.Earnings(ctx, s.db, own)
	if err != nil {
		return err
	}
	ended, err := delivery.EndedOf(ctx, s.db, own)
	if err != nil {
		return err
	}
	addresses, err := payout.Store{}.Addresses(ctx, s.db, own)
	if err != nil {
		return err
	}
	payouts, next := cut(payouts, list.limit, payoutID)
	page := earningsPage{frame: s.accountFrame(c, "earnings"), Done: earningsDone[action(list.more.Get("done"))], Conflict: asked.conflict, Paged: list.cursor != "",
		Days: count(int(delivery.EndedWindow.Hours() / 24)), Typed: plain(asked.address), Problem: asked.problem}
	list.more.Del("done")
	page.First, page.Next = pagesOf(accountEarningsPath, list, next)
	for _, p := range payouts {
		page.Rows = append(page.Rows, s.payoutOnPageOf(p))
	}
	for _, e := range sums {
		page.Sums = append(page.Sums, s.sumOnPageOf(e))
	}
	for _, e := range ended {
		page.Ended = append(page.Ended, endedOnPage{strings.ReplaceAll(string(e.Outcome), "_", " "), count(e.Calls)})
	}
	for _, a := range addresses {
		page.Addresses = append(page.Addresses, s.payeeOnPageOf(a))
	}
	for _, n := range s.networks {
		page.Networks = append(page.Networks, choice{ID: n.ID, Name: networkName(n.V1Name, n.ID), Chosen: n.ID == asked.network})
	}
	return s.writePage(c, status, accountEarningsTemplate, page)
}

// symbolOf is the name of an asset for people; its address where it is not configured any more.
func (s *Server) symbolOf(network string, asset common.Address) string {
	for _, n := range s.networks {
		if a, known := n.Asset(asset); known && n.ID == network {
			return a.Symbol
		}
	}
	return asset.Hex()
}

func (s *Server) sumOnPageOf(e payout.Earnings) sumOnPage {
	of := func(sum money.Signed) string {
		m := s.money(e.Network, e.Asset, noLess(sum))
		return amountShort(m.USD, m.Amount.String())
	}
	row := sumOnPage{Asset: s.symbolOf(e.Network, e.Asset), Network: s.networkText(e.Network), Contract: e.Asset.Hex(), NetworkID: e.Network,
		Pending: of(e.Pending), Available: of(e.Available), OnWay: of(e.Underway), Held: of(e.Held), Paid: of(e.Paid), Some: e.Available.Sign() > 0}
	if e.Lost.Sign() > 0 {
		row.Lost = of(e.Lost)
	}
	return row
}

// payoutBadges are where a payout is, in the words of whoever gets it.
var payoutBadges = map[payout.State]badge{
	payout.StateOwed: {"being sent", "wait"}, payout.StateSent: {"on its way", "wait"}, payout.StateConfirmed: {"paid", "good"}, payout.StateParked: {"waits", "bad"},
	payout.StateCancelled: {Word: "cancelled"},
}

func (s *Server) payoutOnPageOf(p payout.Payout) payoutOnPage {
	v := s.payoutViewOf(p)
	row := payoutOnPage{ID: v.ID, Number: count(int(v.Number)), Amount: amountText(v.Amount), Network: s.networkText(p.Network), To: v.Address, State: payoutBadges[p.State],
		Made: momentOf(p.MadeAt), Confirmed: momentOf(p.ConfirmedAt)}
	if v.Held && p.State != payout.StateCancelled {
		row.State = badge{"held", "bad"}
	}
	if v.Why != nil {
		row.Why = plain(*v.Why)
	}
	if v.Transaction != nil {
		row.Transaction, row.Link = *v.Transaction, s.explorerLink(p.Network, *v.Transaction)
	}
	return row
}

func (s *Server) payeeOnPageOf(a payout.Address) payeeOnPage {
	row := payeeOnPage{Network: s.networkText(a.Network), NextAt: momentOf(a.NextAt)}
	if a.Now != (common.Address{}) {
		row.Now = a.Now.Hex()
	}
	if a.Next != (common.Address{}) {
		row.Next = a.Next.Hex()
	}
	return row
}

// accountDrawEarnings serves POST /account/earnings: a payout now, or another address.
func (s *Server) accountDrawEarnings(c echo.Context) error {
	form, ok, err := s.accountFormOf(c)
	if !ok {
		return err
	}
	does, asked := action(form.Get("action")), earningsAsked{network: form.Get("network"), address: strings.TrimSpace(form.Get("address"))}
	switch does {
	case actPayOut:
		if !common.IsHexAddress(form.Get("asset")) {
			return refusal.New(call.NotFound, "there is no such asset")
		}
		_, err = s.payOwn(c, asked.network, common.HexToAddress(form.Get("asset")))
	case actSetAddress:
		_, err = s.setAddress(c, asked.network, asked.address)
	default:
		return refusal.New(call.NotFound, "there is no such decision")
	}
	if err == nil {
		return c.Redirect(http.StatusSeeOther, accountEarningsPath+"?"+url.Values{"done": {string(does)}}.Encode())
	}
	status, shown := asked.refused(err)
	if !shown {
		return err
	}
	return s.writeEarnings(c, status, asked)
}

// A payoutPage is the statement of one payout.
type payoutPage struct {
	frame
	payoutOnPage
	Calls, Price, Fee, Share string
	Units                    string // of what: base units of an asset
	Lines                    []lineView
	Shown                    string // how many lines, where there are more
	CSV                      string
}

// linesShown is how many calls of a statement stand on the page; the file has all of them.
const linesShown = 200

// ownPayout finds the payout of the address, of the account that asks.
func (s *Server) ownPayout(c echo.Context) (payout.Payout, error) {
	id, err := idParam(c)
	if err != nil {
		return payout.Payout{}, err
	}
	p, err := payout.Store{}.Find(c.Request().Context(), s.db, id)
	if err == nil && p.Account != principalOf(c).Account {
		err = payout.ErrNone
	}
	if err != nil {
		return payout.Payout{}, noPayout(err)
	}
	return p, nil
}

// accountPayout serves GET /account/payouts/{id}.
func (s *Server) accountPayout(c echo.Context) error {
	p, err := s.ownPayout(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	sum, err := payout.Store{}.Sum(ctx, s.db, p.ID)
	if err != nil {
		return err
	}
	lines, err := payout.Store{}.Lines(ctx, s.db, p.ID, linesShown)
	if err != nil {
		return err
	}
	page := payoutPage{frame: s.accountFrame(c, "earnings"), payoutOnPage: s.payoutOnPageOf(p), Calls: plural(sum.Calls, "call", "calls"), Price: sum.Price.String(), Fee: sum.Fee.String(),
		Share: sum.Share.String(), Units: s.symbolOf(p.Network, p.Asset), CSV: accountHome + "/payouts/" + p.ID.String() + "/statement.csv"}
	if sum.Calls > len(lines) {
		page.Shown = count(len(lines))
	}
	for _, l := range lines {
		page.Lines = append(page.Lines, lineViewOf(l))
	}
	return s.writePage(c, http.StatusOK, accountPayoutTemplate, page)
}

// accountPayoutFile serves GET /account/payouts/{id}/statement.csv.
func (s *Server) accountPayoutFile(c echo.Context) error {
	p, err := s.ownPayout(c)
	if err != nil {
		return err
	}
	lines, err := payout.Store{}.Lines(c.Request().Context(), s.db, p.ID, payout.LinesMax)
	if err != nil {
		return err
	}
	return writeStatement(c, p, lines)
}
