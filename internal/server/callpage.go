package server

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/refund"
	"market/web"
)

var callTemplate = template.Must(template.ParseFS(web.Templates, "templates/call.html", "templates/style.html"))

// pagePolicy lets a page of ours show its own style and nothing else.
const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A callPage answers one question: where is my money?
type callPage struct {
	telling
	URL    string
	Facts  []fact
	Signed bool // its record has a receipt
}

type fact struct {
	Name, Value string
	Code        bool
}

// A telling says where the money of a call is. Moving: that will change by itself.
type telling struct {
	Tone        string // good, wait or bad
	Headline    string
	Explanation string
	Moving      bool
}

// wantsPage says whether a person asks, with a browser.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

func (s *Server) writeCallPage(c echo.Context, r delivery.Record, view callView) error {
	page := callPage{telling: s.tellingOf(r), URL: view.URL, Signed: view.Receipt != nil}
	add := func(name, value string, code bool) {
		if value != "" {
			page.Facts = append(page.Facts, fact{name, value, code})
		}
	}
	add("Service", r.Service, false)
	add("Request", r.Method+" "+r.Path, true)
	add("State", view.State, false)
	add("Reason", string(r.Reason), true)
	if view.Payment != nil {
		add("Paid", "$"+view.Payment.USD, false)
		add("By", view.Payment.Payer, true)
		add("On", view.Payment.Network, false)
		add("Transaction", view.Payment.Transaction, true)
		add("Not proved", view.Payment.Unproved, false)
	}
	if view.Refund != nil {
		add("Refund", "$"+view.Refund.USD+", "+view.Refund.State, false)
		add("Refund to", view.Refund.To, true)
		add("Refund by", view.Refund.Transaction, true)
	}
	add("Started", view.Created, false)
	add("Asked", view.AskedAt, false)
	add("Ended", view.Recorded, false)
	add("Call", r.Call.String(), true)

	var body bytes.Buffer
	if err := callTemplate.Execute(&body, page); err != nil {
		return fmt.Errorf("render call %s: %w", r.Call, err)
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	return c.HTMLBlob(http.StatusOK, body.Bytes())
}

// tellingOf tells, for every state a call can be in, where its money is.
func (s *Server) tellingOf(r delivery.Record) telling {
	price := "the price"
	if paid := s.paid(r.Paid()); paid != nil {
		price = "$" + paid.USD
	}
	switch r.State {
	case call.Settling:
		return telling{"wait", "The payment is on its way", "The authorization of " + price + " is being put on the chain. Sign no other one.", true}
	case call.Unknown:
		return telling{"wait", "The payment is not proved yet",
			"The authorization of " + price + " was sent, and whether it moved the money is not known yet. Send the same payment again, or wait; sign no other one.", true}
	case call.Settled:
		if r.Word != "" {
			return telling{"wait", "The payment is not proved yet", "A facilitator says that it has settled " + price + ", and our own node has not seen it yet. Sign no other payment.", true}
		}
		return telling{"wait", "The payment arrived, and the service was not asked yet",
			"Send the same payment again to be served. If nobody does, " + price + " goes back to the wallet that paid.", true}
	case call.Asked:
		if r.Word != "" {
			return telling{"wait", "The service is working on it", "A facilitator says that it has settled " + price + ", and our own node has not seen it yet. The service was asked.", true}
		}
		return telling{"wait", "The service is working on it", price + " arrived, and the service was asked.", true}
	case call.Rejected:
		return telling{"bad", "The token refused the payment", "No money moved. If it moves after all, it is sent back in full.", true}
	case call.Expired:
		return telling{"bad", "The payment never reached the chain", "Its time is over: no money moved, and none will.", true}
	case call.StateReleased:
		return telling{"bad", "The payment was not used", "No money moved. The same payment may be sent again.", false}
	case call.StateServed, call.StateRefused, call.StateFailed, call.StateCooldownRefused, "":
	}
	return endedTelling(r, price)
}

var neverCame = telling{"bad", "The payment never came", "A facilitator said that it was settled, and it never was. The money is with the wallet that paid: nothing is owed.", false}

func endedTelling(r delivery.Record, price string) telling {
	if r.Outcome == call.Served {
		if r.Trial {
			return telling{"good", "This trial call was served", "It cost nothing.", false}
		}
		switch {
		case r.Word != "":
			return telling{"good", "This call was served", "A facilitator says that " + price + " paid for it; our own node has not seen it yet.", true}
		case r.False:
			return telling{"good", "This call was served", "A facilitator said that " + price + " paid for it, and the payment never came: the market carries it.", false}
		}
		return telling{"good", "This call was served", price + " paid for it.", false}
	}
	if r.Refund == nil {
		if r.False {
			return neverCame
		}
		if r.Reason == call.SettlementLost {
			return telling{"bad", "The chain took the payment back", "The money is with the wallet that paid: nothing is owed.", false}
		}
		return telling{"bad", "This call was not charged", "No money moved for it.", false}
	}
	why := map[call.Outcome]string{
		call.Failed:          "The call was paid for and not delivered.",
		call.Refused:         "The service refused the request.",
		call.CooldownRefused: "The service was resting after a failure and was not asked.",
	}[r.Outcome]
	switch r.Refund.State {
	case refund.StateConfirmed:
		return telling{"good", "Your money is back", why + " The whole " + price + " was sent to the wallet that paid.", false}
	case refund.StateParked:
		return telling{"bad", "Your refund waits for us", why + " The whole " + price + " is owed to the wallet that paid, and could not be sent yet: " + r.Refund.Why + ".", true}
	case refund.StateVoid:
		if r.False {
			return neverCame
		}
		return telling{"bad", "The chain took the payment back", "The money is with the wallet that paid: nothing is owed.", false}
	case refund.StateOwed, refund.StateSent:
	}
	if r.Word != "" {
		why += " A facilitator says that the payment was settled; our own node has not seen it yet."
	}
	return telling{"wait", "Your money is on its way back", why + " The whole " + price + " goes to the wallet that paid, once the payment is final on the chain.", true}
}
