package server

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"market/internal/ledger"
	"market/internal/money"
	"market/internal/reconcile"
)

const adminMoneyPath = adminHome + "/money"

var adminMoneyTemplate = adminTemplate("money")

// An adminMoneyPage says where all money is, what of it is not as it should be, and what that stops.
type adminMoneyPage struct {
	frame
	Done        string
	Form        string
	Says        string
	OK, Nothing bool // nothing is wrong; there is no money yet, and no wallet
	Wrong       []string
	Closed      []closedOnPage
	Promises    []promiseOnPage
	Wallets     []walletOnPage
	Differences []differenceOnPage
	Suspected   []differenceOnPage
}

// A closedOnPage is a network on which nobody new is asked to pay.
type closedOnPage struct {
	Network, Why string
	Since        *moment
}

type promiseOnPage struct {
	Network, Asset string
	State          badge
	Places         []sourceFact
}

type walletOnPage struct {
	Network, Asset, Treasury string
	State                    badge
	Facts                    []sourceFact
	Compared                 *moment
	Accounts                 []sourceFact
	Total                    string
}

type differenceOnPage struct {
	Text, Network, Treasury string
	State                   badge
	Age                     string
	Since, Closed           *moment
}

// adminMoney serves GET /admin/money.
func (s *Server) adminMoney(c echo.Context) error {
	view, err := s.readMoney(c.Request().Context())
	if err != nil {
		return err
	}
	page := adminMoneyPage{frame: s.adminFrame(c, "money"), OK: view.OK, Nothing: len(view.Wallets)+len(view.Promises) == 0, Says: "Nothing is wrong."}
	page.Form = page.Admin.Form
	if c.QueryParam("done") == "reconcile" {
		page.Done = "The chain was held against the books just now."
	}
	if !view.OK {
		page.Says = plural(len(view.Wrong), "thing is", "things are") + " wrong."
	}
	for _, text := range view.Wrong {
		page.Wrong = append(page.Wrong, plain(upperFirst(text)))
	}
	for _, p := range view.Promises {
		page.Promises = append(page.Promises, s.promiseOnPageOf(p))
	}
	for _, w := range view.Wallets {
		page.Wallets = append(page.Wallets, s.walletOnPageOf(w))
	}
	for _, d := range view.Differences {
		row := s.differenceOnPageOf(d, view.At)
		page.Differences = append(page.Differences, row)
		if row.Closed != nil && !slices.ContainsFunc(page.Closed, func(n closedOnPage) bool { return n.Network == row.Network }) {
			page.Closed = append(page.Closed, closedOnPage{Network: row.Network, Why: row.Text, Since: row.Closed})
		}
	}
	for _, d := range view.Suspected {
		row := s.differenceOnPageOf(d, view.At)
		row.State = badge{"seen just now", "wait"}
		page.Suspected = append(page.Suspected, row)
	}
	return s.writePage(c, http.StatusOK, adminMoneyTemplate, page)
}

// adminReconcile serves POST /admin/money: a look at the chain now, and what it found.
func (s *Server) adminReconcile(c echo.Context) error {
	if _, ok, err := s.formOf(c); !ok {
		return err
	}
	if err := s.lookAtChain(c.Request().Context()); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, adminMoneyPath+"?done=reconcile")
}

func (s *Server) promiseOnPageOf(p promiseView) promiseOnPage {
	text := func(a money.Amount) string { return s.signedText(p.Network, p.Asset, a.Debit()) }
	row := promiseOnPage{Network: s.networkText(p.Network), Asset: p.Asset, State: badge{"adds up", "good"}, Places: []sourceFact{
		{Name: "Paid", Value: text(p.Paid)}, {Name: "Served", Value: text(p.Served)}, {Name: "Refund owed", Value: text(p.RefundOwed)},
		{Name: "Refund confirmed", Value: text(p.RefundConfirmed)}, {Name: "Lost", Value: text(p.Lost), Note: "the chain took it back"},
		{Name: "Pending", Value: text(p.Pending), Note: "paid, and no outcome yet"},
		{Name: "Unproved", Value: text(p.Unproved), Note: "a facilitator's word, not in the sum"}, {Name: "Carried", Value: text(p.Carried), Note: "served, and never paid"},
	}}
	if !p.Balanced {
		row.State = badge{"does not add up", "bad"}
		row.Places = append(row.Places, sourceFact{Name: "Astray", Value: plural(p.Astray, "payment", "payments"), Note: "in none of these places, or in two"})
	}
	return row
}

func (s *Server) walletOnPageOf(w walletView) walletOnPage {
	text := func(a money.Signed) string { return s.signedText(w.Network, w.Asset, a) }
	row := walletOnPage{Network: s.networkText(w.Network), Asset: w.Asset, Treasury: w.Treasury, State: badge{"not looked at yet", "wait"}}
	if w.Held != nil {
		row.State = badge{"looked at", "good"}
		row.Facts = append(row.Facts, sourceFact{Name: "Holds", Value: text(w.Held.Debit()), Note: "at block " + strconv.FormatUint(*w.Block, 10)},
			sourceFact{Name: "Opened with", Value: text(w.OpeningBalance.Debit()), Note: "at block " + strconv.FormatUint(*w.OpeningBlock, 10)})
	}
	row.Facts = append(row.Facts, sourceFact{Name: "May have to give back", Value: text(w.Owed.Debit())},
		sourceFact{Name: "Without a row", Value: plural(w.Unmatched, "transfer", "transfers")})
	var total money.Signed
	for _, account := range ledger.Accounts() {
		if balance, there := w.Balances[string(account)]; there {
			row.Accounts = append(row.Accounts, sourceFact{Name: accountNames[account], Value: text(balance)})
			total = total.Add(balance)
		}
	}
	row.Total = text(total)
	if !w.Balanced {
		row.State = badge{"its books do not balance", "bad"}
	}
	row.Compared = momentOf(w.Looked)
	return row
}

// accountNames are what the accounts of the books are called for people.
var accountNames = map[ledger.Account]string{
	ledger.Treasury: "Treasury", ledger.Pending: "Calls without an outcome", ledger.Provider: "Providers", ledger.Fees: "Fees", ledger.RefundsPayable: "Refunds payable",
	ledger.Losses: "Losses", ledger.Suspense: "In suspense", ledger.Operator: "Operator",
}

func (s *Server) differenceOnPageOf(d differenceView, now time.Time) differenceOnPage {
	row := differenceOnPage{Text: plain(upperFirst(d.Text)), Network: s.networkText(d.Network), Treasury: d.Treasury, Since: momentOf(d.From), Closed: momentOf(d.Until),
		State: badge{"closes the network after 15 minutes", "bad"}, Age: roughly(now.Sub(d.From))}
	switch {
	case d.Closed != nil:
		row.State = badge{"the network is closed", "bad"}
	case d.Kind == reconcile.Inflow:
		row.State = badge{"in suspense, closes nothing", "wait"}
	}
	return row
}

// signedText is an amount for people; what is owed to somebody is below zero.
func (s *Server) signedText(network, asset string, a money.Signed) string {
	sign := ""
	if a.Sign() < 0 {
		sign, a = "−", a.Neg()
	}
	amount, err := money.ParseAmount(a.String())
	if err != nil {
		return sign + a.String() + " base units"
	}
	return sign + amountText(s.money(network, common.HexToAddress(asset), amount))
}
