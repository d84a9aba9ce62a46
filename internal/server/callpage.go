package server

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/money"
	"market/internal/refund"
)

// A callPage answers one question: where is my money?
type callPage struct {
	frame
	telling
	ID     string
	Next   string
	Steps  []step
	Facts  []fact
	URL    string
	Signed bool // its record has a receipt
}

type fact struct {
	Name, Value, Link string
	Code, Hash        bool
}

// A telling says where the money of a call is. Moving: that will change by itself.
type telling struct {
	Tone        string // good, wait or bad
	Headline    string
	Explanation string
	Moves       bool
}

func (s *Server) writeCallPage(c echo.Context, r delivery.Record, view callView) error {
	return s.writePage(c, http.StatusOK, callTemplate, s.callPage(r, view))
}

func (s *Server) callPage(r delivery.Record, view callView) callPage {
	page := callPage{frame: s.frame(), telling: s.tellingOf(r), Next: nextOf(r), Steps: s.stepsOf(r), URL: view.URL, Signed: view.Receipt != nil}
	page.JSON, page.Unlisted, page.ID = "/api/v1/calls/"+r.Call.String(), true, r.Call.String()
	page.Facts = []fact{{Name: "Service", Value: r.Service, Link: "/services/" + r.Service}, {Name: "Request", Value: plain(r.Method + " " + r.Path), Code: true},
		{Name: "State", Value: strings.ReplaceAll(view.State, "_", " ")}}
	page.Facts = append(page.Facts, s.moneyFacts(view.Payment, view.Refund)...)
	page.Facts = append(page.Facts, fact{Name: "Call", Value: r.Call.String(), Hash: true})
	return page
}

// moneyFacts says what was paid and what comes back: all of it is on a public chain.
func (s *Server) moneyFacts(paid *paidJSON, back *refundJSON) (facts []fact) {
	add := func(f fact) {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	if paid != nil {
		add(fact{Name: "Payment", Value: amountText(paid.Money)})
		add(fact{Name: "From", Value: paid.Payer, Hash: true})
		add(fact{Name: "On", Value: s.networkText(paid.Network)})
		add(fact{Name: "Transaction", Value: paid.Transaction, Hash: true, Link: s.explorerLink(paid.Network, paid.Transaction)})
		add(fact{Name: "Not proved", Value: paid.Unproved})
	}
	if back != nil {
		add(fact{Name: "Refund", Value: amountText(back.Money) + ", " + back.State})
		add(fact{Name: "Refund to", Value: back.To, Hash: true})
		add(fact{Name: "Refund transaction", Value: back.Transaction, Hash: true, Link: s.explorerLink(back.Network, back.Transaction)})
	}
	return facts
}

// amountText is an amount with its full precision, in dollars where its asset is known, and in base units.
func amountText(m money.Money) string {
	units := m.Amount.String() + " base units"
	if m.USD == "" {
		return units
	}
	return "$" + m.USD + " (" + units + ")"
}

func (s *Server) networkText(id string) string {
	for _, n := range s.networks {
		if n.ID == id {
			return networkName(n.V1Name, n.ID)
		}
	}
	return id
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
		case r.Dropped:
			return telling{"good", "This call was served", "The chain that showed its payment of " + price + " does not show it any more: it is sent again.", true}
		case r.TakenBack:
			return telling{"good", "This call was served", "The chain took its payment of " + price + " back after that: the market carries it.", false}
		case r.Reason == call.CallerLeft:
			return telling{"good", "This call was served, and its caller left before the end", price + " paid for it. The service was told to stop.", false}
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
		return telling{"bad", "Your refund waits for us", why + " The whole " + price + " is owed to the wallet that paid, and could not be sent yet: " + plain(r.Refund.Why) + ".", true}
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
