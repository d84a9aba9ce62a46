package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/refusal"
)

var adminAuditTemplate = adminTemplate("audit")

// An auditPage lists what was decided, the newest first.
type auditPage struct {
	frame
	Service     string // only about this one; empty: about all
	Rows        []auditOnPage
	First, Next string // addresses of pages; empty where there is none
	Paged       bool
}

type auditOnPage struct {
	What, By, Slug, Reason string
	At                     *moment
	Changes                []changeOnPage
}

func (s *Server) adminAudit(c echo.Context) error {
	list, err := readPage(c, "service")
	if err != nil {
		return err
	}
	if err := list.limited(); err != nil {
		return err
	}
	page := auditPage{frame: s.adminFrame(c, "audit"), Service: brief(list.more.Get("service"), 64), Paged: list.cursor != ""}
	ctx := c.Request().Context()
	var of uuid.UUID
	if page.Service != "" {
		service, err := s.store.Find(ctx, s.db, list.more.Get("service"))
		if no, ok := errors.AsType[*refusal.Error](err); ok && no.Reason == call.NotFound {
			return s.writePage(c, http.StatusNotFound, adminAuditTemplate, page) // nothing was decided about a service that never was
		} else if err != nil {
			return err
		}
		of = service.ID
	}
	entries, next, known, err := audit.Store{}.List(ctx, s.db, of, list.limit, list.cursor)
	switch {
	case err != nil:
		return err
	case !known:
		return badParameter("cursor", "is not one that we gave out")
	}
	page.First, page.Next = pagesOf("/admin/audit", list, next)
	for _, e := range entries {
		page.Rows = append(page.Rows, auditOnPageOf(e))
	}
	return s.writePage(c, http.StatusOK, adminAuditTemplate, page)
}

// deeds say what a decision did; what is not in it, as of a newer program, is named as it is.
var deeds = map[audit.Action]string{
	audit.Void:    "Voided",
	audit.Uphold:  "Upheld",
	audit.Relist:  "Put back on the shelf",
	audit.Suspend: "Suspended",
	audit.Recount: "Counted again",

	audit.SourceTried: "Said to be topped up",

	audit.SwitchedOn:   "Switched on",
	audit.SwitchedOff:  "Switched off",
	audit.PlanSet:      "Given another plan",
	audit.AdminGranted: "Made an admin",
	audit.AdminRevoked: "Made an admin no more",
	audit.SessionEnded: "Signed out",
	audit.KeyMade:      "Made a key",
	audit.KeyRevoked:   "Revoked a key",

	audit.RefundRetried:  "Tried again",
	audit.ReviewRefunded: "Refunded after a restore",
	audit.ReviewServed:   "Let be served after a restore",
	audit.TransferBooked: "Booked",

	audit.AddressSet:      "To be paid elsewhere",
	audit.PayoutMade:      "Paid out",
	audit.PayoutHeld:      "Payout held",
	audit.PayoutReleased:  "Payout released",
	audit.PayoutRetried:   "Payout tried again",
	audit.PayoutCancelled: "Payout cancelled",
}

func auditOnPageOf(e audit.Entry) auditOnPage {
	what, known := deeds[e.Action]
	if !known {
		what = upperFirst(plain(string(e.Action)))
	}
	return auditOnPage{What: what + ": " + string(e.Subject.Kind) + " " + brief(e.Subject.Name, 80), By: plain(e.By), Slug: e.Slug, Reason: plain(e.Reason), At: momentOf(e.At),
		Changes: changesOf(e.Before, e.After)}
}

type changeOnPage struct{ Name, Before, After string }

// changesOf compares how something stood before and after, member by member. What did not change is left out.
func changesOf(before, after json.RawMessage) (changes []changeOnPage) {
	was, is := flat(before), flat(after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was[name] != is[name] {
			changes = append(changes, changeOnPage{Name: brief(strings.ReplaceAll(name, "_", " "), 80), Before: orNone(was[name]), After: orNone(is[name])})
		}
	}
	return changes
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return brief(s, 200)
}

// flat writes the members of a document, and those of the objects in it, as "strikes 01a2…": "open".
func flat(document json.RawMessage) map[string]string {
	var members map[string]any
	_ = json.Unmarshal(document, &members) // what is no object has no members
	out := map[string]string{}
	for name, v := range members {
		inner, ok := v.(map[string]any)
		if !ok {
			out[name] = worded(v)
			continue
		}
		for key, value := range inner {
			out[name+" "+key] = worded(value)
		}
	}
	return out
}

func worded(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return fmt.Sprintf("%g", v)
	}
	text, _ := json.Marshal(v) // it was JSON
	return string(text)
}
