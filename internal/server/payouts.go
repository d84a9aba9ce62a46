package server

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/delivery"
	"market/internal/money"
	"market/internal/payout"
	"market/internal/refusal"
)

// An addressView is where an account is paid on a network.
type addressView struct {
	Network string  `json:"network"`
	Address *string `json:"address"` // null: none holds yet
	Next    *string `json:"next"`    // null: no change waits
	NextAt  *string `json:"next_at"`
}

func addressViewOf(a payout.Address) addressView {
	v := addressView{Network: a.Network, NextAt: timeOrNull(a.NextAt)}
	if a.Now != (common.Address{}) {
		v.Address = orNull(a.Now.Hex())
	}
	if a.Next != (common.Address{}) {
		v.Next = orNull(a.Next.Hex())
	}
	return v
}

// payoutAddresses serves GET /api/v1/provider/payout-address.
func (s *Server) payoutAddresses(c echo.Context) error {
	all, err := payout.Store{}.Addresses(c.Request().Context(), s.db, principalOf(c).Account)
	if err != nil {
		return err
	}
	views := make([]addressView, 0, len(all))
	for _, a := range all {
		views = append(views, addressViewOf(a))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views})
}

// setPayoutAddress serves PUT /api/v1/provider/payout-address. It is kept in the audit, whoever's account it is: it says where money goes.
func (s *Server) setPayoutAddress(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	var sent struct {
		Network *string `json:"network"`
		Address *string `json:"address"`
	}
	if err := decodeOne(body, &sent); err != nil || sent.Network == nil || sent.Address == nil {
		return refusal.New(call.InvalidRequest, `/ expected {"network": CAIP-2 name, "address": address}`)
	}
	set, err := s.setAddress(c, *sent.Network, *sent.Address)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, addressViewOf(set))
}

// setAddress has the account that asks paid to another address on a network, and keeps that it was set.
func (s *Server) setAddress(c echo.Context, network, text string) (set payout.Address, err error) {
	ours, known := s.payouts.Ours(network)
	if !known {
		return payout.Address{}, refusal.New(call.InvalidRequest, "/network is none that calls are paid on here")
	}
	address, err := readWallet(text)
	if err != nil {
		return payout.Address{}, refusal.New(call.InvalidRequest, "/address %s", noWallet)
	}
	ctx, own, by := c.Request().Context(), principalOf(c).Account, authorOf(c)
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) (err error) {
		if set, err = (payout.Store{}).SetAddress(ctx, tx, own, network, address, ours); err != nil {
			return err
		}
		if err := delivery.TellAddress(ctx, tx, own, set, by); err != nil {
			return err
		}
		entry := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: audit.AddressSet, Subject: audit.Account(own), Reason: "set"}
		return s.keepEntry(ctx, tx, entry, map[string]any{}, map[string]any{"network": network, "address": address.Hex(), "now": set.Now.Hex()})
	})
	if errors.Is(err, payout.ErrNotPaid) {
		return payout.Address{}, refusal.New(call.InvalidRequest, "/address is one that nobody is paid to: it is ours, a token's, or nobody's")
	}
	return set, err
}

// An earningsView is what an account has earned of one asset on one network, and where it is.
type earningsView struct {
	Network   string      `json:"network"`
	Asset     string      `json:"asset"`
	Pending   money.Money `json:"pending"`
	Lost      money.Money `json:"lost"`
	Available money.Money `json:"available"`
	Underway  money.Money `json:"underway"`
	Held      money.Money `json:"held"`
	Paid      money.Money `json:"paid"`
}

// earnings serves GET /api/v1/provider/earnings.
func (s *Server) earnings(c echo.Context) error {
	all, err := payout.Store{}.Earnings(c.Request().Context(), s.db, principalOf(c).Account)
	if err != nil {
		return err
	}
	views := make([]earningsView, 0, len(all))
	for _, e := range all {
		of := func(sum money.Signed) money.Money { return s.money(e.Network, e.Asset, noLess(sum)) }
		views = append(views, earningsView{e.Network, e.Asset.Hex(), of(e.Pending), of(e.Lost), of(e.Available), of(e.Underway), of(e.Held), of(e.Paid)})
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views})
}

// noLess is a sum that is nothing where corrections make it less.
func noLess(s money.Signed) money.Amount {
	if s.Sign() <= 0 {
		return money.Amount{}
	}
	amount, err := money.FromBig(s.Big())
	if err != nil {
		return money.Amount{}
	}
	return amount
}

// A payoutView is one payout.
type payoutView struct {
	ID          string       `json:"id"`
	Number      int64        `json:"number"`
	Amount      money.Money  `json:"amount"`
	Address     string       `json:"address"`
	State       payout.State `json:"state"`
	Held        bool         `json:"held"`
	Why         *string      `json:"why"` // it is not paid yet
	MadeAt      string       `json:"made_at"`
	Transaction *string      `json:"transaction"` // null until it is final
	ConfirmedAt *string      `json:"confirmed_at"`
}

func (s *Server) payoutViewOf(p payout.Payout) payoutView {
	v := payoutView{ID: p.ID.String(), Number: p.Number, Amount: s.money(p.Network, p.Asset, p.Amount), Address: p.Address.Hex(), State: p.State,
		Held: p.Held || p.Stopped != "", Why: orNull(p.Why), MadeAt: timeJSON(p.MadeAt), ConfirmedAt: timeOrNull(p.ConfirmedAt)}
	if p.State == payout.StateConfirmed {
		v.Transaction, v.Held = orNull(p.Transaction.Hex()), false
	}
	return v
}

// listPayouts serves GET /api/v1/provider/payouts, the newest first.
func (s *Server) listPayouts(c echo.Context) error {
	list, err := readPage(c)
	if err != nil {
		return err
	}
	return s.writePayouts(c, list, payout.Filter{Account: principalOf(c).Account}, func(p payout.Payout) any { return s.payoutViewOf(p) })
}

func payoutID(p payout.Payout) uuid.UUID { return p.ID }

func (s *Server) writePayouts(c echo.Context, list page, f payout.Filter, view func(payout.Payout) any) (err error) {
	if f.Before, err = list.before(); err != nil {
		return err
	}
	all, err := payout.Store{}.List(c.Request().Context(), s.db, f, list.limit+1)
	if err != nil {
		return err
	}
	all, next := cut(all, list.limit, payoutID)
	views := make([]any, 0, len(all))
	for _, p := range all {
		views = append(views, view(p))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views, "next_cursor": next})
}

// askPayout serves POST /api/v1/provider/payouts.
func (s *Server) askPayout(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	var sent struct {
		Network *string `json:"network"`
		Asset   *string `json:"asset"`
	}
	if err := decodeOne(body, &sent); err != nil || sent.Network == nil || sent.Asset == nil || !common.IsHexAddress(*sent.Asset) {
		return refusal.New(call.InvalidRequest, `/ expected {"network": CAIP-2 name, "asset": address}`)
	}
	made, err := s.payOwn(c, *sent.Network, common.HexToAddress(*sent.Asset))
	if err != nil {
		return err
	}
	views := make([]payoutView, 0, len(made))
	for _, p := range made {
		views = append(views, s.payoutViewOf(p))
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, map[string]any{"items": views})
}

// payOwn pays out what is there for the account that asks.
func (s *Server) payOwn(c echo.Context, network string, asset common.Address) ([]payout.Payout, error) {
	made, err := s.payouts.PayNow(c.Request().Context(), s.db, principalOf(c).Account, network, asset, authorOf(c).Name)
	if err != nil {
		return nil, noPayout(err)
	}
	return made, nil
}

// noPayout is why none was made, or changed, for whoever asked.
func noPayout(err error) error {
	for is, no := range map[error]*refusal.Error{
		payout.ErrTooLittle: refusal.New(call.Conflict, "there is less than the network's floor to be paid out: of calls whose payment is final, and that no payout has taken"),
		payout.ErrOpen:      refusal.New(call.Conflict, "an earlier payout of the same has not ended; what comes meanwhile waits for the next"),
		payout.ErrNoAddress: refusal.New(call.Conflict, "there is no address to pay to on this network: PUT /api/v1/provider/payout-address"),
		payout.ErrNone:      refusal.New(call.NotFound, "there is no such payout, network or asset"),
		payout.ErrSigned:    refusal.New(call.Conflict, "the payout is signed and may have left, so it can not be cancelled any more"),
		payout.ErrEnded:     refusal.New(call.Conflict, "the payout has ended"),
		payout.ErrHeld:      refusal.New(call.Conflict, "the payout is so already"),
	} {
		if errors.Is(err, is) {
			return no
		}
	}
	return err
}

// A lineView is one call of a statement. The sums are base units of the payout's asset.
type lineView struct {
	Call    string `json:"call"`
	At      string `json:"at"`
	Service string `json:"service"`
	Price   string `json:"price"`
	Fee     string `json:"fee"`
	Share   string `json:"share"`
}

// statement serves GET /api/v1/provider/payouts/{number}/statement: what a payout pays for, call by call, to the last unit.
func (s *Server) statement(c echo.Context) error {
	list, err := readPage(c, "network", "asset", "format")
	if err != nil {
		return err
	}
	format := list.more.Get("format")
	if format != "" && !slices.Contains([]string{"json", "csv"}, format) {
		return badParameter("format", "must be json or csv")
	}
	p, err := s.payoutOf(c, list)
	if err != nil {
		return err
	}
	lines, err := payout.Store{}.Lines(c.Request().Context(), s.db, p.ID, payout.LinesMax)
	if err != nil {
		return err
	}
	if format == "csv" {
		return writeStatement(c, p, lines)
	}
	views, sum := make([]lineView, 0, len(lines)), money.Signed{}
	for _, l := range lines {
		views = append(views, lineViewOf(l))
		sum = sum.Add(l.Share)
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"payout": s.payoutViewOf(p), "lines": views, "sum": sum.String()})
}

func lineViewOf(l payout.Line) lineView {
	return lineView{l.Call.String(), timeJSON(l.At), l.Service, l.Price.String(), l.Fee.String(), l.Share.String()}
}

// writeStatement sends a statement as a file. It is made as a whole first: what ends looks whole.
func writeStatement(c echo.Context, p payout.Payout, lines []payout.Line) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set(echo.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="payout-%d.csv"`, p.Number))
	limitWrite(c)
	return c.Blob(http.StatusOK, typeCSV, csvOf(p, lines))
}

// csvOf is a statement as a table. Its last row are the sums.
func csvOf(p payout.Payout, lines []payout.Line) []byte {
	var transaction string
	if p.State == payout.StateConfirmed {
		transaction = p.Transaction.Hex()
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	row := func(cells ...string) {
		_ = w.Write(append(cells, p.Network, p.Asset.Hex(), transaction)) // a buffer takes everything
	}
	_ = w.Write(strings.Split("call,time,service,price,fee,share,network,asset,transaction", ","))
	var price, fee, share money.Signed
	for _, l := range lines {
		v := lineViewOf(l)
		row(v.Call, v.At, v.Service, v.Price, v.Fee, v.Share)
		price, fee, share = price.Add(l.Price), fee.Add(l.Fee), share.Add(l.Share)
	}
	row("sum", "", "", price.String(), fee.String(), share.String())
	w.Flush()
	return b.Bytes()
}

// payoutOf finds the payout of a number of the account that asks. Numbers count for each network and asset, so those are to be said where several have it.
func (s *Server) payoutOf(c echo.Context, list page) (payout.Payout, error) {
	none := refusal.New(call.NotFound, "there is no such payout")
	number, err := strconv.ParseInt(c.Param("number"), 10, 64)
	if err != nil || number < 1 {
		return payout.Payout{}, none
	}
	all, err := payout.Store{}.Numbered(c.Request().Context(), s.db, principalOf(c).Account, number, list.more.Get("network"))
	if err != nil {
		return payout.Payout{}, err
	}
	if asset := list.more.Get("asset"); asset != "" {
		all = slices.DeleteFunc(all, func(p payout.Payout) bool { return !strings.EqualFold(p.Asset.Hex(), asset) })
	}
	switch len(all) {
	case 0:
		return payout.Payout{}, none
	case 1:
		return all[0], nil
	}
	return payout.Payout{}, badParameter("network", "has to be given, and asset: several payouts have this number")
}
