package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/refund"
)

var accountCallsTemplate = accountTemplate("calls")

// A paidPage shows a wallet what it has paid for, and where that money is.
type paidPage struct {
	frame
	Wallet      string
	States      []choice
	Filtered    bool
	Totals      []totalOnPage
	Newest      string // how many were added up, where it is not all
	Rows        []paidOnPage
	CSV         string // address of the same as a file
	RowsMax     string
	First, Next string // addresses of pages; empty where there is none
	Paged       bool
}

type totalOnPage struct{ Asset, Calls, Spent, Refunded, Owed, Pending string }

type paidOnPage struct {
	ID, Service, Request, Amount, Network string
	State                                 badge
	Says                                  string // how it ended, in words; empty while it has not
	At                                    *moment
	Transaction, Link                     string
	Unproved                              string // why nothing proves the payment
	Refund                                *badge
	RefundWhy, RefundTransaction          string
	RefundLink                            string
}

// paidFilters are what the list can be narrowed to.
var paidFilters = []choice{{ID: "", Name: "any"}, {ID: stateOpen, Name: "under way"}, {ID: string(call.StateServed), Name: "served"}, {ID: string(call.StateFailed), Name: "failed"},
	{ID: string(call.StateRefused), Name: "refused"}, {ID: string(call.StateCooldownRefused), Name: "refused while the service rested"},
	{ID: string(call.StateReleased), Name: "payment not used"}}

// accountCalls serves GET /account/calls.
func (s *Server) accountCalls(c echo.Context) error {
	list, err := readPage(c, "state")
	if err != nil {
		return err
	}
	before, err := list.before()
	if err != nil {
		return err
	}
	ctx, payer, state := c.Request().Context(), principalOf(c).Wallet, list.more.Get("state")
	read, err := s.callsLedger(payer, state)
	if err != nil {
		return err
	}
	records, err := read(ctx, before, list.limit+1)
	if err != nil {
		return err
	}
	records, next := cut(records, list.limit, callOf)
	page := paidPage{frame: s.accountFrame(c, "calls"), Wallet: payer.Hex(), Filtered: state != "", Paged: list.cursor != "", RowsMax: count(csvRowsMax),
		CSV: accountHome + "/calls.csv"}
	if state != "" {
		page.CSV += "?" + url.Values{"state": {state}}.Encode()
	}
	page.First, page.Next = pagesOf(accountHome+"/calls", list, next)
	for _, f := range paidFilters {
		f.Chosen = f.ID == state
		page.States = append(page.States, f)
	}
	for _, r := range records {
		page.Rows = append(page.Rows, s.paidOnPageOf(r))
	}
	if !page.Paged {
		spending, newest, err := delivery.SpendingOf(ctx, s.db, payer)
		if err != nil {
			return err
		}
		page.Totals = s.totalsOnPage(spending)
		if newest {
			page.Newest = count(delivery.SpendingMax)
		}
	}
	return s.writePage(c, http.StatusOK, accountCallsTemplate, page)
}

// accountCallsFile serves GET /account/calls.csv: what the API gives as CSV, to a browser that is signed in.
func (s *Server) accountCallsFile(c echo.Context) error {
	list, err := readPage(c, "state")
	if err != nil {
		return err
	}
	before, err := list.before()
	if err != nil {
		return err
	}
	read, err := s.callsLedger(principalOf(c).Wallet, list.more.Get("state"))
	if err != nil {
		return err
	}
	return s.writeCSV(c, "calls", before, read)
}

func (s *Server) paidOnPageOf(r delivery.Record) paidOnPage {
	v := s.callView(r)
	row := paidOnPage{ID: r.Call.String(), Service: r.Service, Request: brief(r.Method+" "+r.Path, 80), At: momentOf(r.Created), State: paidBadge(r)}
	if r.Outcome != "" {
		row.Says = strings.ReplaceAll(string(r.Reason), "_", " ")
	}
	if p := v.Payment; p != nil {
		row.Amount, row.Network, row.Unproved = amountShort(p.USD, p.Amount.String()), s.networkText(p.Network), plain(p.Unproved)
		if r.Proved {
			row.Transaction, row.Link = p.Transaction, s.explorerLink(p.Network, p.Transaction)
		}
	}
	if b := v.Refund; b != nil {
		shown := refundBadges[refund.State(b.State)]
		row.Refund, row.RefundTransaction, row.RefundLink = &shown, b.Transaction, s.explorerLink(b.Network, b.Transaction)
		if b.State == string(refund.StateParked) {
			row.RefundWhy = plain(b.Why)
		}
	}
	return row
}

// amountShort is an amount in a list: in dollars where they are known.
func amountShort(usd, units string) string {
	if usd == "" {
		return units + " units"
	}
	return "$" + usd
}

// paidBadge is how a call stands, for whoever paid for it.
func paidBadge(r delivery.Record) badge {
	switch r.State {
	case call.StateServed:
		return badge{"served", "good"}
	case call.StateFailed:
		return badge{"failed", "bad"}
	case call.StateRefused:
		return badge{"refused", "wait"}
	case call.StateCooldownRefused:
		return badge{"service rested", "wait"}
	case call.StateReleased:
		return badge{Word: "payment not used"}
	case call.Settling, call.Unknown, call.Rejected, call.Expired, call.Settled, call.Asked:
	}
	if r.Review {
		return badge{"being looked into", "wait"}
	}
	return badge{"under way", "wait"}
}

// refundBadges are where a refund is, in the words of whoever gets it.
var refundBadges = map[refund.State]badge{
	refund.StateOwed: {"on its way back", "wait"}, refund.StateSent: {"on its way back", "wait"}, refund.StateConfirmed: {"money is back", "good"},
	refund.StateParked: {"waits for us", "bad"}, refund.StateVoid: {Word: "nothing is owed"},
}
