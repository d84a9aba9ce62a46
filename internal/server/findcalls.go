package server

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/refusal"
)

// hashForm is a transaction or a nonce.
var hashForm = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`)

// A callsPage finds calls by what their caller may know of them.
type callsPage struct {
	frame
	Q       string
	Problem string
	Found   []foundOnPage
}

type foundOnPage struct {
	telling
	Facts []fact
}

// A foundView is what may be told of a call to whoever knows its transaction or its nonce, which are public: what the chain shows too, and
// where the money is. Which service was called, and how, is for those who have the call's id.
type foundView struct {
	State    string      `json:"state"`
	Charged  any         `json:"charged"`
	Payment  *paidJSON   `json:"payment,omitempty"`
	Refund   *refundJSON `json:"refund,omitempty"`
	Created  string      `json:"created_at,omitempty"`
	Recorded string      `json:"recorded_at,omitempty"`
}

// findCalls serves GET /api/v1/calls, and to a browser its page at /calls.
func (s *Server) findCalls(c echo.Context) error {
	c.Response().Header().Set("Vary", "Accept")
	page := callsPage{frame: s.frame()}
	asPage := !strings.HasPrefix(c.Path(), "/api/") && wantsPage(c.Request())
	q, err := findQuery(c.Request().URL.RawQuery)
	page.Q = q
	if no, bad := err.(*refusal.Error); bad { //nolint:errorlint // made a line above
		if !asPage {
			return no
		}
		page.Problem = upperFirst(no.Fields[0].Message) + "."
		if no.Fields[0].Name != "q" {
			page.Problem = "The address has a parameter that this page does not know."
		}
		return s.writePage(c, http.StatusBadRequest, callsTemplate, page)
	}
	if id, err := uuid.Parse(q); err == nil {
		return c.Redirect(http.StatusSeeOther, strings.TrimSuffix(c.Path(), "/")+"/"+id.String())
	}
	var found []delivery.Record
	if q != "" {
		if found, err = delivery.Find(c.Request().Context(), s.db, s.networkIDs(), common.HexToHash(q)); err != nil {
			return err
		}
	}
	if asPage {
		for _, r := range found {
			page.Found = append(page.Found, foundOnPage{s.tellingOf(r), s.moneyFacts(s.paid(r.Paid()), s.refund(r.Returning()))})
		}
		page.Unlisted = q != ""
		return s.writePage(c, http.StatusOK, callsTemplate, page)
	}
	if q == "" {
		return badParameter("q", "is required: a call's id, a transaction or a payment's nonce")
	}
	views := make([]foundView, 0, len(found))
	for _, r := range found {
		v := s.callView(r)
		views = append(views, foundView{State: v.State, Charged: v.Charged, Payment: v.Payment, Refund: v.Refund, Created: v.Created, Recorded: v.Recorded})
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views})
}

// findQuery reads the one parameter; what was typed comes back beside an error.
func findQuery(rawQuery string) (string, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", badParameter("q", "cannot be read")
	}
	for name := range values {
		if name != "q" || len(values[name]) != 1 {
			return "", badParameter(name, "is no parameter of this list, or was given twice")
		}
	}
	q := strings.TrimSpace(values.Get("q"))
	if _, err := uuid.Parse(q); q == "" || err == nil && len(q) == 36 || hashForm.MatchString(q) {
		return q, nil
	}
	return plain(q), badParameter("q", "must be a call's id, or 0x and 64 hex digits")
}

func badParameter(name, message string) error {
	no := refusal.New(call.InvalidParameter, "%q %s", name, message)
	no.Fields = []refusal.Field{{Name: name, Message: message}}
	return no
}

func (s *Server) networkIDs() (ids []string) {
	for _, n := range s.networks {
		ids = append(ids, n.ID)
	}
	return ids
}
