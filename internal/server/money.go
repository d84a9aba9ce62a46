package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/ledger"
	"market/internal/money"
	"market/internal/postgres"
	"market/internal/reconcile"
	"market/internal/refusal"
)

const (
	// openDifferencesMax bounds the differences of one answer, the newest first.
	openDifferencesMax = 500
	// comparedWithin is how old the last look at a wallet may be until that is wrong by itself: some looks that fail in a row.
	comparedWithin = 10 * reconcile.Every
)

// A moneyView says where all money is, and what of it is not as it should be.
type moneyView struct {
	OK          bool             `json:"ok"`
	Wrong       []string         `json:"wrong"` // in words; empty where all is right
	Promises    []promiseView    `json:"promise_one"`
	Wallets     []walletView     `json:"wallets"`
	Differences []differenceView `json:"differences"`
	Suspected   []differenceView `json:"suspected"` // what was seen, and has not lasted yet

	At time.Time `json:"-"` // by the database's clock
}

// A promiseView says where all that was ever paid in one asset is. Amounts are in base units, as in all of these.
type promiseView struct {
	Network         string       `json:"network"`
	Asset           string       `json:"asset"`
	Paid            money.Amount `json:"paid"`
	Served          money.Amount `json:"served"`
	RefundOwed      money.Amount `json:"refund_owed"`
	RefundConfirmed money.Amount `json:"refund_confirmed"`
	Lost            money.Amount `json:"lost"`
	Pending         money.Amount `json:"pending"`
	Unproved        money.Amount `json:"unproved"`
	Carried         money.Amount `json:"carried"`
	Astray          int          `json:"astray"`
	Balanced        bool         `json:"balanced"`
}

// A walletView is one asset in one treasury: what the books say, and what the chain does.
type walletView struct {
	Network        string                  `json:"network"`
	Asset          string                  `json:"asset"`
	Treasury       string                  `json:"treasury"`
	Balances       map[string]money.Signed `json:"balances"` // by account; a debit is positive
	Balanced       bool                    `json:"balanced"`
	Owed           money.Amount            `json:"owed"`            // refunds, and calls that have not ended
	Held           *money.Amount           `json:"held"`            // null, as what follows: it was not looked at yet
	Block          *uint64                 `json:"block"`           // as of which it is held
	OpeningBlock   *uint64                 `json:"opening_block"`   // where its reconciliation begins
	OpeningBalance *money.Amount           `json:"opening_balance"` // and what was there
	Unmatched      int                     `json:"unmatched"`       // transfers that no row says why, at the moment
	ComparedAt     *string                 `json:"compared_at"`

	Looked time.Time `json:"-"` // the same as ComparedAt
}

// A differenceView is one difference that lasts.
type differenceView struct {
	Network  string         `json:"network"`
	Asset    string         `json:"asset"`
	Treasury string         `json:"treasury"`
	Kind     reconcile.Kind `json:"kind"`
	Subject  *string        `json:"subject"` // null: it is about the wallet as a whole
	Text     string         `json:"text"`
	Since    string         `json:"since"`
	Closed   *string        `json:"closed_at"` // since when nobody new is asked to pay on the network; null: it closes nothing, or not yet

	From, Until time.Time `json:"-"` // the same as Since and Closed
}

// showMoney serves GET /api/v1/admin/money.
func (s *Server) showMoney(c echo.Context) error {
	view, err := s.readMoney(c.Request().Context())
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, view)
}

// reconcileNow serves POST /api/v1/admin/money/reconcile: it looks now, and answers what GET does then.
func (s *Server) reconcileNow(c echo.Context) error {
	if err := s.lookAtChain(c.Request().Context()); err != nil {
		return err
	}
	return s.showMoney(c)
}

func (s *Server) lookAtChain(ctx context.Context) error {
	if s.reconcile == nil {
		return refusal.New(call.NotReady, "nothing is reconciled here")
	}
	if err := s.reconcile(ctx); err != nil {
		return refusal.New(call.NotReady, "the chain could not be held against the books just now; it is tried again every minute, and the log says why").WithCause(err)
	}
	return nil
}

func (s *Server) readMoney(ctx context.Context) (v moneyView, err error) {
	v = moneyView{Wrong: []string{}, Promises: []promiseView{}, Differences: []differenceView{}, Suspected: []differenceView{}}
	wrong := func(text string, args ...any) { v.Wrong = append(v.Wrong, fmt.Sprintf(text, args...)) }
	figures, err := delivery.PromiseOne(ctx, s.db)
	if err != nil {
		return moneyView{}, err
	}
	for _, f := range figures {
		v.Promises = append(v.Promises, promiseViewOf(f))
		if !f.Balanced() {
			wrong("what was paid is not where it should be: %s", f)
		}
	}
	if v.At, err = postgres.MarketNow(ctx, s.db); err != nil {
		return moneyView{}, err
	}
	if v.Wallets, err = s.readWallets(ctx, v.At, wrong); err != nil {
		return moneyView{}, err
	}
	open, err := reconcile.Store{}.Open(ctx, s.db, openDifferencesMax)
	if err != nil {
		return moneyView{}, err
	}
	for _, d := range open {
		v.Differences = append(v.Differences, differenceViewOf(d))
		// Anybody can send us money: it stands in suspense, and is shown, and nothing is wrong with that.
		if d.Kind != reconcile.Inflow {
			wrong("%s on %s: %s", d.Treasury, d.Network, d.Text)
		}
	}
	suspected, err := reconcile.Store{}.Suspected(ctx, s.db, openDifferencesMax)
	if err != nil {
		return moneyView{}, err
	}
	for _, d := range suspected {
		v.Suspected = append(v.Suspected, differenceViewOf(d))
	}
	v.OK = len(v.Wrong) == 0
	return v, nil
}

func differenceViewOf(d reconcile.Difference) differenceView {
	return differenceView{Network: d.Network, Asset: d.Asset.Hex(), Treasury: d.Treasury.Hex(), Kind: d.Kind, Subject: orNull(d.Subject), Text: d.Text,
		Since: timeJSON(d.Since), Closed: timeOrNull(d.ClosedAt), From: d.Since, Until: d.ClosedAt}
}

func promiseViewOf(f delivery.Figure) promiseView {
	return promiseView{Network: f.Network, Asset: common.BytesToAddress(f.Asset).Hex(), Paid: f.Paid, Served: f.Served, RefundOwed: f.RefundOwed, RefundConfirmed: f.RefundConfirmed,
		Lost: f.Lost, Pending: f.Pending, Unproved: f.Unproved, Carried: f.Carried, Astray: f.Astray, Balanced: f.Balanced()}
}

// readWallets returns every wallet that the books or the chain know of, and says what is wrong with one.
func (s *Server) readWallets(ctx context.Context, now time.Time, wrong func(string, ...any)) ([]walletView, error) {
	balances, err := ledger.Store{}.TrialBalance(ctx, s.db)
	if err != nil {
		return nil, err
	}
	owed, err := delivery.Liabilities(ctx, s.db)
	if err != nil {
		return nil, err
	}
	known, err := reconcile.Store{}.Wallets(ctx, s.db)
	if err != nil {
		return nil, err
	}
	all := []walletView{}
	at := map[reconcile.Key]int{}
	of := func(k reconcile.Key) *walletView {
		i, there := at[k]
		if !there {
			i = len(all)
			at[k] = i
			all = append(all, walletView{Network: k.Network, Asset: k.Asset.Hex(), Treasury: k.Treasury.Hex(), Balances: map[string]money.Signed{}, Balanced: true,
				Owed: delivery.OwedBy(owed, k.Network, k.Asset, k.Treasury).Owed()})
		}
		return &all[i]
	}
	for _, w := range known {
		view := of(w.Key)
		view.Held, view.Block, view.OpeningBlock, view.OpeningBalance = &w.Held, &w.HeldBlock, &w.OpeningBlock, &w.OpeningBalance
		view.Unmatched, view.ComparedAt = w.Unmatched, timeOrNull(w.ComparedAt)
		view.Looked = w.ComparedAt
		if last := w.LookedAt(); now.Sub(last) > comparedWithin {
			wrong("%s on %s was not compared with the chain for %s", w.Treasury, w.Network, now.Sub(last).Round(time.Second))
		}
	}
	totals := map[reconcile.Key]money.Signed{}
	for _, b := range balances {
		k := reconcile.Key{Network: b.Network, Asset: b.Asset, Treasury: b.Treasury}
		of(k).Balances[string(b.Account)] = b.Amount
		totals[k] = totals[k].Add(b.Amount)
	}
	for k, total := range totals {
		if total.Sign() != 0 {
			of(k).Balanced = false
			wrong("the books of %s on %s sum to %s", k.Treasury, k.Network, total)
		}
	}
	return all, nil
}
