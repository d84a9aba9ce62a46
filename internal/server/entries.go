package server

import (
	"math"
	"net/http"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/ledger"
	"market/internal/money"
	"market/internal/refusal"
)

// An entryView is a transfer that an admin has booked.
type entryView struct {
	Kind        ledger.EntryKind `json:"kind"`
	Network     string           `json:"network"`
	Asset       string           `json:"asset"`
	Treasury    string           `json:"treasury"`
	To          string           `json:"to_treasury,omitempty"` // of what was moved between two
	Amount      money.Amount     `json:"amount"`
	Transaction string           `json:"transaction"`
	LogIndex    uint             `json:"log_index"`
	Block       uint64           `json:"block"`
	Reason      string           `json:"reason"`
	By          string           `json:"by"`
}

const entryForm = `expected {"kind": "top_up", "fee_withdrawal" or "moved", "network": text, "transaction": "0x…", "log_index": number, "reason": text}`

// bookEntry serves POST /api/v1/admin/money/entries.
func (s *Server) bookEntry(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	order, reason, err := readEntryOrder(body)
	if err != nil {
		return err
	}
	e, err := delivery.BookEntry(c.Request().Context(), s.db, order, authorOf(c), reason)
	if err != nil {
		return err
	}
	v := entryView{Kind: e.Kind, Network: e.Network, Asset: e.Asset.Hex(), Treasury: e.Treasury.Hex(), Amount: e.Amount,
		Transaction: e.Transfer.Transaction.Hex(), LogIndex: e.Transfer.LogIndex, Block: e.Transfer.Block, Reason: e.Reason, By: e.By}
	if e.Kind == ledger.Moved {
		v.To = e.To.Hex()
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, v)
}

// readEntryOrder reads what a transfer is said to be. What nobody can explain is booked by the reconciliation, and by no admin.
func readEntryOrder(body []byte) (o delivery.EntryOrder, reason string, err error) {
	var sent struct {
		Kind        ledger.EntryKind `json:"kind"`
		Network     string           `json:"network"`
		Transaction string           `json:"transaction"`
		LogIndex    *uint64          `json:"log_index"`
		Reason      *string          `json:"reason"`
	}
	if err := decodeOne(body, &sent); err != nil {
		return delivery.EntryOrder{}, "", refusal.New(call.InvalidRequest, "/ "+entryForm)
	}
	transaction, err := hexutil.Decode(sent.Transaction)
	switch {
	case sent.Kind != ledger.TopUp && sent.Kind != ledger.FeeWithdrawal && sent.Kind != ledger.Moved:
		return delivery.EntryOrder{}, "", refusal.New(call.InvalidRequest, "/kind is none: "+entryForm)
	case sent.Network == "":
		return delivery.EntryOrder{}, "", refusal.New(call.InvalidRequest, "/network is missing: "+entryForm)
	case err != nil || len(transaction) != common.HashLength:
		return delivery.EntryOrder{}, "", refusal.New(call.InvalidRequest, "/transaction is no hash: "+entryForm)
	case sent.LogIndex == nil || *sent.LogIndex > math.MaxInt32:
		return delivery.EntryOrder{}, "", refusal.New(call.InvalidRequest, "/log_index is none: "+entryForm)
	}
	reason, err = reasonOf(sent.Reason)
	return delivery.EntryOrder{Kind: sent.Kind, Network: sent.Network, Transaction: common.BytesToHash(transaction), LogIndex: uint(*sent.LogIndex)}, reason, err
}
