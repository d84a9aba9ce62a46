package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/crash"
	"market/internal/delivery"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/wire"
)

// Headers of our own that every answer to a call carries.
const (
	headerCall    = "Market-Call"
	headerOutcome = "Market-Outcome"
)

// headerTrialLeft stands in answers to trial calls: how many of today's its caller has left.
const headerTrialLeft = "Market-Trial-Left"

// outcomePending stands in Market-Outcome while a call is open. An answer that is about no call has no outcome.
const outcomePending = "pending"

// writeAnswer writes what the paid or the trial path answered.
func (s *Server) writeAnswer(c echo.Context, a delivery.Answer) error {
	crash.Before(crash.Answer)
	err := s.writeResult(c, a)
	crash.AfterAnswer(c.Response().Flush)
	return err
}

// writeResult writes it: as the service's own answer, or as a problem.
func (s *Server) writeResult(c echo.Context, a delivery.Answer) error {
	logAnswer(c, a)
	if c.Response().Committed { // it was streamed
		finishStream(c, a)
		return nil
	}
	h := c.Response().Header()
	writeHead(h, a)
	switch {
	case a.Outcome != "":
		h.Set(headerOutcome, string(a.Outcome))
	case a.Charged == delivery.ChargedPending:
		h.Set(headerOutcome, outcomePending)
	}
	if a.RetryAfter > 0 {
		setRetryAfter(h, a.RetryAfter)
	}
	if a.Served() {
		return writeServed(c, a)
	}
	return s.writeProblem(c, a)
}

// logAnswer puts into the request's line what became of the call.
func logAnswer(c echo.Context, a delivery.Answer) {
	log := logOf(c)
	log.call, log.outcome, log.reason, log.err = a.Call, a.Outcome, a.Reason, a.Err
	if a.Payment != nil {
		log.payer = a.Payment.Payer.Hex()
	}
}

// writeHead says which call it is, what was settled for it, and of a trial what is left of them.
func writeHead(h http.Header, a delivery.Answer) {
	if a.Call != (call.ID{}) {
		h.Set(headerCall, a.Call.String())
	}
	if a.Receipt != nil {
		h.Set(a.Receipt.Header(), payment.EncodeResponse(*a.Receipt))
	}
	if a.TrialLeft != nil {
		h.Set(headerTrialLeft, strconv.Itoa(*a.TrialLeft))
	}
}

// writeServiceHead passes the service's headers on.
func writeServiceHead(h http.Header, a delivery.Answer) {
	for name, values := range a.Header {
		h[name] = values
	}
	if h[echo.HeaderContentType] == nil {
		h[echo.HeaderContentType] = nil // said, so that net/http does not guess one from the bytes: the service gave none
	}
	h.Set("Cache-Control", "private, no-store")
	// A page of a provider's stands under our name: it may be shown, and may not act.
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
}

// writeServed passes the service's answer on, byte for byte.
func writeServed(c echo.Context, a delivery.Answer) error {
	writeServiceHead(c.Response().Header(), a)
	limitWrite(c)
	c.Response().WriteHeader(a.Status)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	_, err := c.Response().Write(a.Body)
	return err
}

func (s *Server) writeProblem(c echo.Context, a delivery.Answer) error {
	p := s.newProblem(a.Reason, statusFor(a.Reason, a.RetryAfter > 0))
	if a.Reason == call.RejectedByService && a.Status != 0 {
		p.Status = a.Status
	}
	p.Party, p.Detail, p.Fields, p.ServiceStatus = cmp.Or(a.Party, p.Party), a.Detail, a.Fields, a.Status
	p.Charged = chargedJSON(a.Charged)
	p.Call = s.link(a.Call)
	p.Payment, p.Refund = s.paid(a.Payment), s.refund(a.Refund)
	p.ServiceAnswer, p.Receipt = serviceAnswer(a.ServiceAnswer), a.Signed
	if a.Challenge == nil {
		return s.writeJSON(c, p.Status, typeProblem, p)
	}
	c.Response().Header().Set(payment.HeaderRequired, a.Challenge.Header(a.Code))
	if p.Status != http.StatusPaymentRequired {
		return s.writeJSON(c, p.Status, typeProblem, p)
	}
	return s.writeJSON(c, p.Status, typeJSON, challengeBody{Body: a.Challenge.Body(a.Code), problem: p})
}

// writeChallenge is the 402 that an unpaid request gets. A person with a browser gets it in words, under the same status and headers.
func (s *Server) writeChallenge(c echo.Context, t catalog.Target, challenge payment.Challenge) error {
	logOf(c).reason = call.PaymentRequired
	c.Response().Header().Set(payment.HeaderRequired, challenge.Header(payment.Unpaid))
	if byBrowser(c.Request()) {
		return s.writePayPage(c, t, challenge)
	}
	p := s.newProblem(call.PaymentRequired, http.StatusPaymentRequired)
	p.Detail = "this call costs money; PAYMENT-REQUIRED says how much and how to pay (x402)"
	return s.writeJSON(c, p.Status, typeJSON, challengeBody{Body: challenge.Body(payment.Unpaid), problem: p})
}

func chargedJSON(c delivery.Charged) any {
	switch c {
	case delivery.ChargedNo:
		return false
	case delivery.ChargedYes:
		return true
	case delivery.ChargedPending:
		return outcomePending
	}
	return outcomePending
}

func (s *Server) link(id call.ID) *callLink {
	if id == (call.ID{}) {
		return nil
	}
	return &callLink{ID: id, URL: s.publicURL + "/api/v1/calls/" + id.String()}
}

func (s *Server) paid(p *delivery.Payment) *paidJSON {
	if p == nil {
		return nil
	}
	return &paidJSON{Money: s.money(p.Network, p.Asset, p.Amount), Payer: p.Payer.Hex(), Transaction: hashJSON(p.Transaction), Unproved: unproved(p)}
}

// unproved says why nothing proves a payment: on whose word it was gone on with, that this word proved false, or what the chain did after it had proved it.
// Empty where it is proved, or is not claimed to be.
func unproved(p *delivery.Payment) string {
	switch {
	case p.Word != "":
		return "the facilitator " + p.Word + " says that it was settled; our own node has not seen it yet"
	case p.False:
		return "a facilitator said that it was settled, and it never was: nothing was charged"
	case p.Dropped:
		return "the chain that showed it does not show it any more, and it is sent again"
	case p.TakenBack:
		return "the chain took it back after it had shown it: nothing was charged"
	}
	return ""
}

func (s *Server) refund(r *delivery.Refund) *refundJSON {
	if r == nil {
		return nil
	}
	return &refundJSON{Money: s.money(r.Network, r.Asset, r.Amount), State: string(r.State), To: r.To.Hex(),
		Transaction: hashJSON(r.Transaction), Why: r.Why}
}

// money shows an amount. An asset that is no longer configured has no decimals that we know, so its dollars stay empty.
func (s *Server) money(network string, asset common.Address, amount money.Amount) money.Money {
	m := money.Money{Amount: amount, Asset: asset.Hex(), Network: network}
	for _, n := range s.networks {
		if a, ok := n.Asset(asset); ok && n.ID == network {
			m.USD = amount.USD(a.Decimals).String()
		}
	}
	return m
}

func hashJSON(h common.Hash) string {
	if h == (common.Hash{}) {
		return ""
	}
	return h.Hex()
}

// serviceAnswer shows what the service said: as it is when it is JSON that every reader reads alike, as a string when it is any other text, not at
// all otherwise. It stands in a document that may hold a receipt, so what a strict reader refuses may not stand raw in it. The list around it
// is the level that the document adds.
func serviceAnswer(body []byte) json.RawMessage {
	switch {
	case len(body) == 0 || !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0:
		return nil
	case json.Valid(body):
		if _, err := wire.Parse(slices.Concat([]byte("["), body, []byte("]"))); err == nil {
			return body
		}
	}
	text, err := json.Marshal(string(body))
	if err != nil {
		return nil
	}
	return text
}
