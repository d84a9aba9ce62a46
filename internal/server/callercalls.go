package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/refund"
)

// What a wallet has paid for and got back is shown to whoever is signed in as that wallet, and to nobody else: the wallet is that of the session, and no
// parameter names one.

// A spendingView is what became of the money that a wallet has signed for in one asset. Amounts are base units; those in US dollars are empty where the
// asset is not configured any more.
type spendingView struct {
	Network    string `json:"network"`
	Asset      string `json:"asset"`
	Calls      int    `json:"calls"`
	Spent      string `json:"spent"`
	Refunded   string `json:"refunded"`
	RefundOwed string `json:"refund_owed"`
	Pending    string `json:"pending"`
	InUSD      *inUSD `json:"usd,omitempty"`
}

type inUSD struct {
	Spent      string `json:"spent"`
	Refunded   string `json:"refunded"`
	RefundOwed string `json:"refund_owed"`
	Pending    string `json:"pending"`
}

func (s *Server) spendingViewOf(p delivery.Spending) spendingView {
	spent, refunded, owed, pending := s.money(p.Network, p.Asset, p.Spent), s.money(p.Network, p.Asset, p.Refunded), s.money(p.Network, p.Asset, p.Owed),
		s.money(p.Network, p.Asset, p.Pending)
	v := spendingView{Network: p.Network, Asset: p.Asset.Hex(), Calls: p.Calls, Spent: p.Spent.String(), Refunded: p.Refunded.String(), RefundOwed: p.Owed.String(),
		Pending: p.Pending.String()}
	if spent.USD != "" {
		v.InUSD = &inUSD{Spent: spent.USD, Refunded: refunded.USD, RefundOwed: owed.USD, Pending: pending.USD}
	}
	return v
}

// stateOpen is what a list of calls takes for every state in which a call has not ended.
const stateOpen = "open"

// callStates are the states of calls that a list was asked for by one word; all of them for none.
func callStates(word string) ([]call.State, error) {
	var open []call.State
	for _, state := range call.States() {
		switch {
		case word == string(state):
			return []call.State{state}, nil
		case !state.Final() && state != call.StateReleased:
			open = append(open, state)
		}
	}
	switch word {
	case "":
		return call.States(), nil
	case stateOpen:
		return open, nil
	}
	return nil, badParameter("state", "is no state of a call, and not "+stateOpen)
}

// A callerLedger is one of the two lists of a wallet, read a page at a time.
type callerLedger func(ctx context.Context, before call.ID, limit int) ([]delivery.Record, error)

func (s *Server) callsLedger(payer common.Address, state string) (callerLedger, error) {
	states, err := callStates(state)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, before call.ID, limit int) ([]delivery.Record, error) {
		return delivery.PaidBy(ctx, s.db, payer, states, before, limit)
	}, nil
}

func (s *Server) refundsLedger(payer common.Address, state string) (callerLedger, error) {
	if state != "" && !slices.Contains(refund.States(), refund.State(state)) {
		return nil, badParameter("state", "is no state of a refund")
	}
	return func(ctx context.Context, before call.ID, limit int) ([]delivery.Record, error) {
		return delivery.RefundedTo(ctx, s.db, payer, refund.State(state), before, limit)
	}, nil
}

// callerCalls serves GET /api/v1/caller/calls: what the wallet that is signed in has paid for, the newest first, as JSON or as CSV.
func (s *Server) callerCalls(c echo.Context) error { return s.writeLedger(c, "calls", s.callsLedger) }

// callerRefunds serves GET /api/v1/caller/refunds: the calls whose money came back to the wallet that is signed in, or is to.
func (s *Server) callerRefunds(c echo.Context) error {
	return s.writeLedger(c, "refunds", s.refundsLedger)
}

func (s *Server) writeLedger(c echo.Context, name string, of func(common.Address, string) (callerLedger, error)) error {
	c.Response().Header().Set("Vary", "Accept")
	page, err := readPage(c, "state", "format")
	if err != nil {
		return err
	}
	before, err := page.before()
	if err != nil {
		return err
	}
	asCSV, err := wantsCSV(c.Request(), page.more)
	if err != nil {
		return err
	}
	payer := principalOf(c).Wallet
	read, err := of(payer, page.more.Get("state"))
	if err != nil {
		return err
	}
	if asCSV {
		return s.writeCSV(c, name, before, read)
	}
	ctx := c.Request().Context()
	records, err := read(ctx, before, page.limit+1)
	if err != nil {
		return err
	}
	records, next := cut(records, page.limit, callOf)
	document := map[string]any{"items": s.callViews(records), "next_cursor": next}
	if page.cursor == "" {
		if err := s.addSpending(ctx, document, payer); err != nil {
			return err
		}
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, document)
}

// addSpending adds the totals of a wallet to the first page of a list: every other page would add up the same once more.
func (s *Server) addSpending(ctx context.Context, document map[string]any, payer common.Address) error {
	spending, newest, err := delivery.SpendingOf(ctx, s.db, payer)
	if err != nil {
		return err
	}
	views := make([]spendingView, 0, len(spending))
	for _, p := range spending {
		views = append(views, s.spendingViewOf(p))
	}
	document["totals"], document["newest_only"] = views, newest
	return nil
}

func callOf(r delivery.Record) call.ID { return r.Call }

func (s *Server) callViews(records []delivery.Record) []callView {
	views := make([]callView, 0, len(records))
	for _, r := range records {
		views = append(views, s.callView(r))
	}
	return views
}

// totalsOnPage are the totals of a wallet for people, by asset.
func (s *Server) totalsOnPage(spending []delivery.Spending) (totals []totalOnPage) {
	for _, p := range spending {
		v := s.spendingViewOf(p)
		name := s.networkText(v.Network)
		t := totalOnPage{Asset: name, Calls: count(v.Calls), Spent: v.Spent + " units", Refunded: v.Refunded + " units", Owed: v.RefundOwed + " units",
			Pending: v.Pending + " units"}
		if v.InUSD != nil {
			t.Spent, t.Refunded, t.Owed, t.Pending = "$"+v.InUSD.Spent, "$"+v.InUSD.Refunded, "$"+v.InUSD.RefundOwed, "$"+v.InUSD.Pending
		}
		for _, n := range s.networks {
			if a, known := n.Asset(p.Asset); known && n.ID == p.Network {
				t.Asset = fmt.Sprintf("%s on %s", plain(a.Symbol), name)
			}
		}
		totals = append(totals, t)
	}
	return totals
}
