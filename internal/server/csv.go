package server

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
)

const (
	typeCSV = "text/csv; charset=utf-8"
	// csvRowsMax bounds one file; a longer list goes on after the call of its last row.
	csvRowsMax = 10_000
	csvBatch   = 500
)

// wantsCSV says whether a list is asked for as a file for spreadsheets: by a parameter, or by what is accepted.
func wantsCSV(r *http.Request, query url.Values) (bool, error) {
	switch {
	case query.Get("format") == "csv":
		return true, nil
	case query.Get("format") == "json":
		return false, nil
	case query.Has("format"):
		return false, badParameter("format", "must be json or csv")
	}
	return strings.Contains(r.Header.Get(echo.HeaderAccept), "text/csv"), nil
}

// csvHead names the columns; see docs/api.md.
var csvHead = []string{
	"created_at", "call", "service", "method", "path", "network", "asset", "amount", "usd", "state", "outcome", "reason", "charged", "transaction",
	"refund_state", "refund_amount", "refund_transaction", "recorded_at",
}

func (s *Server) csvRow(r delivery.Record) []string {
	v := s.callView(r)
	charged := map[delivery.Charged]string{delivery.ChargedYes: "true", delivery.ChargedNo: "false", delivery.ChargedPending: "pending"}[r.Charged()]
	row := []string{v.Created, v.ID.String(), v.Service, v.Method, v.Path, "", "", "", "", v.State, string(v.Outcome), string(v.Reason), charged, "", "", "", "", v.Recorded}
	if p := v.Payment; p != nil {
		row[5], row[6], row[7], row[8], row[13] = p.Network, p.Asset, p.Amount.String(), p.USD, p.Transaction
	}
	if b := v.Refund; b != nil {
		row[14], row[15], row[16] = b.State, b.Amount.String(), b.Transaction
	}
	for i, cell := range row {
		row[i] = inert(cell)
	}
	return row
}

// inert keeps a spreadsheet from taking a text for a formula: a path, for one, is the caller's own and may be anybody's.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// writeCSV sends a list as a file, as it is read. One that cannot be read to its end is broken off, because a file that ends looks whole.
func (s *Server) writeCSV(c echo.Context, name string, before call.ID, read callerLedger) error {
	ctx := c.Request().Context()
	records, err := read(ctx, before, csvBatch)
	if err != nil {
		return err // nothing is sent yet
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set(echo.HeaderContentType, typeCSV)
	h.Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`.csv"`)
	limitWrite(c)
	c.Response().WriteHeader(http.StatusOK)
	w := csv.NewWriter(c.Response())
	_ = w.Write(csvHead) // as the rows: what went wrong is asked for after each batch
	for sent := 0; ; {
		for _, r := range records {
			_ = w.Write(s.csvRow(r))
		}
		w.Flush()
		sent += len(records)
		if w.Error() != nil || len(records) < csvBatch || sent >= csvRowsMax {
			return w.Error()
		}
		limitWrite(c)
		if records, err = read(ctx, records[len(records)-1].Call, csvBatch); err != nil {
			logOf(c).err, logOf(c).aborted = err, true
			panic(http.ErrAbortHandler)
		}
	}
}
