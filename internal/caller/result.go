package caller

import (
	"cmp"
	"encoding/json"
	"mime"
	"net/http"
	"slices"

	"market/internal/call"
	"market/internal/payment"
)

// Names of the headers that a market adds to its answers.
const (
	HeaderCall    = "Market-Call"
	HeaderOutcome = "Market-Outcome"
)

// A Result is the last answer to a call. What a server that is no market leaves out is zero.
type Result struct {
	Status    int
	Header    http.Header
	Body      []byte
	Truncated bool  // the body had more than BodyBytesMax
	Broken    error // of a streamed answer: why it did not come to its end; what became of the call is in its record

	Quote         *Quote // what the payment was asked for; nil where none was
	PaymentHeader string // what was sent in PAYMENT-SIGNATURE; empty where nothing was paid
	Payment       *payment.SettleResponse
	CallID        string
	Outcome       call.Outcome
	Problem       *Problem
}

// A Problem is the problem document of an answer that is none of the service's.
type Problem struct {
	Type    string      `json:"type"`
	Title   string      `json:"title"`
	Status  int         `json:"status"`
	Detail  string      `json:"detail"`
	Code    call.Reason `json:"code"`
	Party   call.Party  `json:"party"`
	Charged Charged     `json:"charged"`
	Call    *Reference  `json:"call"`
	Refund  *Refund     `json:"refund"`
}

// A Reference points at a call's record.
type Reference struct {
	ID  string `json:"id"`
	URL string `json:"url"`
}

// A Refund is where the money of a call is that was not delivered.
type Refund struct {
	State       string `json:"state"` // owed, sent, confirmed or parked
	Transaction string `json:"transaction"`
}

// clean makes the texts of a server fit to be shown.
func (r *Refund) clean() {
	if r != nil {
		r.State, r.Transaction = printable(r.State), printable(r.Transaction)
	}
}

// RefundConfirmed is the state of a refund that is proved on the chain.
const RefundConfirmed = "confirmed"

// Charged says whether the money of a call is gone.
type Charged string

// The values that the wire has as true, false and "pending".
const (
	ChargedYes     Charged = "true"
	ChargedNo      Charged = "false"
	ChargedPending Charged = "pending"
)

// UnmarshalJSON reads a boolean or "pending"; anything else says nothing.
func (c *Charged) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "true":
		*c = ChargedYes
	case "false":
		*c = ChargedNo
	case `"pending"`:
		*c = ChargedPending
	default:
		*c = ""
	}
	return nil
}

// read takes from the headers, the body and the trailers what a market says about the call.
func (r *Result) read(trailer http.Header) {
	r.CallID = printable(r.Header.Get(HeaderCall))
	if outcome := call.Outcome(cmp.Or(r.Header.Get(HeaderOutcome), trailer.Get(HeaderOutcome))); slices.Contains(call.Outcomes(), outcome) {
		r.Outcome = outcome
	}
	if h := r.Header.Get(payment.HeaderResponse); h != "" {
		if settled, err := payment.DecodeResponse(h); err == nil {
			settled.Transaction, settled.Network, settled.Payer = printable(settled.Transaction), printable(settled.Network), printable(settled.Payer)
			r.Payment = &settled
		}
	}
	// The body of a 402 is JSON for clients of x402 v1, and a problem document as well.
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/problem+json" && (kind != "application/json" || r.Status != http.StatusPaymentRequired) {
		return
	}
	var p Problem
	if err := json.Unmarshal(r.Body, &p); err == nil && p.Code != "" {
		p.Code, p.Title, p.Detail = call.Reason(printable(string(p.Code))), printable(p.Title), printable(p.Detail)
		p.Refund.clean()
		r.Problem = &p
	}
}

// An Ending is what a call came to, for whoever paid.
type Ending int

const (
	_       Ending = iota
	Served         // the service answered
	Refused        // nothing was delivered, and nothing is charged
	Failed         // it was paid for and not delivered; the money comes back where the server is a market
	Pending        // the payment was sent and its fate is not known yet
)

// Ending judges an answer by what the market says of it, and by its status where none does.
func (r *Result) Ending() Ending {
	if r.Broken != nil {
		return Pending
	}
	if p := r.Problem; p != nil && (p.Charged == ChargedPending || p.Code == call.SettlementPending || p.Code == call.InProgress) {
		return Pending
	}
	switch r.Outcome {
	case call.Served:
		return Served
	case call.Refused, call.CooldownRefused:
		return Refused
	case call.Failed:
		return Failed
	}
	if r.Status >= 200 && r.Status < 300 {
		return Served
	}
	return r.endingOfFailure()
}

func (r *Result) endingOfFailure() Ending {
	switch {
	case r.PaymentHeader == "":
		return Refused
	case r.Payment != nil && r.Payment.Success:
		return Failed
	case r.Problem != nil && r.Problem.Charged == ChargedNo:
		return Refused
	case r.Status >= 500:
		return Pending // a proxy's answer, perhaps, with the call still under way behind it
	}
	return Refused
}
