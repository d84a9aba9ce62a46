package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/refusal"
)

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
)

// A problem is an RFC 9457 document with our members. The same members stand beside the x402 v1 body of a 402.
type problem struct {
	Type    string          `json:"type"`
	Title   string          `json:"title"`
	Status  int             `json:"status"`
	Code    call.Reason     `json:"code"`
	Detail  string          `json:"detail,omitempty"`
	Party   call.Party      `json:"party"`
	Charged any             `json:"charged"` // true, false or "pending"
	Call    *callLink       `json:"call,omitempty"`
	Payment *paidJSON       `json:"payment,omitempty"`
	Refund  *refundJSON     `json:"refund,omitempty"`
	Receipt *payment.Signed `json:"receipt,omitempty"`
	Fields  []refusal.Field `json:"fields,omitempty"`
	// Of a request for more than a plan has: the limit, and the next plan that has more.
	Limit         *planLimitJSON    `json:"limit,omitempty"`
	Plan          string            `json:"plan,omitempty"`
	NextPlan      *refusal.NextPlan `json:"next_plan,omitempty"`
	ServiceStatus int               `json:"service_status,omitempty"`
	ServiceAnswer json.RawMessage   `json:"service_answer,omitempty"`
}

// challengeBody is the body of a 402: what x402 v1 clients read, and the problem.
type challengeBody struct {
	payment.Body
	problem
}

type callLink struct {
	ID  call.ID `json:"id"`
	URL string  `json:"url"`
}

type paidJSON struct {
	money.Money
	Payer       string `json:"payer"`
	Transaction string `json:"transaction,omitempty"`
	Unproved    string `json:"unproved,omitempty"` // why nothing proves it
}

type planLimitJSON struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

type refundJSON struct {
	money.Money
	State       string `json:"state"`
	To          string `json:"to"`
	Transaction string `json:"transaction,omitempty"`
	Why         string `json:"why,omitempty"`
}

// newProblem starts the document of a reason. Its type leads to what the reason means.
func (s *Server) newProblem(reason call.Reason, status int) problem {
	title := strings.ReplaceAll(string(reason), "_", " ")
	return problem{Type: s.publicURL + "/rules#" + string(reason), Title: upperFirst(title), Status: status, Code: reason,
		Party: call.PartyOf(reason), Charged: false}
}

// writeError is echo's HTTPErrorHandler: every handler's error ends here. A refusal keeps its reason; anything else is a bare 500.
func (s *Server) writeError(err error, c echo.Context) {
	if c.Response().Committed {
		return // the answer is under way; the log has the error
	}
	no := refusalOf(err)
	if no.Reason == call.Internal {
		logOf(c).err = err
	}
	p := s.newProblem(no.Reason, statusFor(no.Reason, !no.Until.IsZero()))
	p.Detail, p.Fields = no.Detail, no.Fields
	if l := no.Plan; l != nil {
		p.Limit, p.Plan, p.NextPlan = &planLimitJSON{l.Limit, l.Value}, l.Plan, l.Next
	}
	if no.Reason == call.Internal && paidWay(c.Request()) && payment.Sent(c.Request().Header) {
		p.Charged = outcomePending // it may have gone wrong before its payment was taken, or after
	}
	if !no.Until.IsZero() {
		setRetryAfter(c.Response().Header(), no.Until.Sub(s.now()))
	}
	logOf(c).reason = no.Reason
	if method := c.Request().Method; byBrowser(c.Request()) && (method == http.MethodGet || method == http.MethodHead || forAdmins(c) || forAccounts(c)) {
		err := s.writePage(c, p.Status, problemTemplate, s.problemPage(p, c.Request().URL.Path, logOf(c).service))
		if err == nil {
			return
		}
		logOf(c).err = err
	}
	if err := s.writeJSON(c, p.Status, typeProblem, p); err != nil {
		logOf(c).err = err
	}
}

func refusalOf(err error) *refusal.Error {
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		return no
	}
	if he, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch he.Code {
		case http.StatusNotFound:
			return refusal.New(call.NotFound, "there is nothing at this address")
		case http.StatusMethodNotAllowed:
			return refusal.New(call.MethodNotAllowed, "this address does not take this method")
		}
	}
	return refusal.New(call.Internal, "something went wrong on our side").WithCause(err)
}

func setRetryAfter(h http.Header, wait time.Duration) {
	h.Set("Retry-After", strconv.Itoa(int(max(1, math.Ceil(wait.Seconds())))))
}

// writeJSON writes a document that no cache may keep.
func (s *Server) writeJSON(c echo.Context, status int, mime string, document any) error {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // nobody takes it for a page: its type is one of JSON, and not to be guessed
	if err := e.Encode(document); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	limitWrite(c)
	return c.Blob(status, mime, bytes.TrimSuffix(body.Bytes(), []byte("\n")))
}

// limitWrite bounds how long a caller may take to read an answer: one that does not read holds up a stop, and a connection, no longer.
func limitWrite(c echo.Context) {
	// A writer that has no deadline, as in tests without a connection, needs none.
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(writeTime))
}
