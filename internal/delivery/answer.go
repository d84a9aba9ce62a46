package delivery

import (
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/refund"
	"market/internal/refusal"
)

// Charged says whether the caller's money is gone.
type Charged int

const (
	_              Charged = iota
	ChargedNo              // it stays with the caller, or returns to it
	ChargedYes             // it paid for what was served
	ChargedPending         // that is not known yet
)

// An Answer is what the caller gets: the result, or what went wrong and where the money is. The door writes it and decides nothing.
type Answer struct {
	Call    call.ID      // zero: nothing is kept of this call
	Outcome call.Outcome // empty: not final yet
	Reason  call.Reason
	Party   call.Party // empty: whose doing the reason is
	Detail  string
	Fields  []refusal.Field
	Charged Charged
	// RetryAfter is when trying again makes sense; zero: waiting alone does not help.
	RetryAfter time.Duration

	Receipt   *payment.SettleResponse // once a settlement was tried
	Signed    *payment.Signed         // what we sign about a paid call that was not served
	Payment   *Payment                // where money moved, or may have moved
	Refund    *Refund                 // where it goes back
	Challenge *payment.Challenge      // with a 402, and with a 400 for the payment header
	Code      payment.Code            // x402's word for the reason, for the challenge

	Status        int         // the service's own, of what it served or refused
	Header        http.Header // what of the service's headers may be passed on
	Body          []byte
	ServiceAnswer []byte // of a refusal by the service

	// TrialLeft is how many trial calls of the endpoint this caller has left today; nil where it was not looked at.
	TrialLeft *int

	Err error // for the log
}

// A Payment is the caller's money as far as we know it.
type Payment struct {
	Network     string
	Asset       common.Address
	Payer       common.Address
	Amount      money.Amount
	Transaction common.Hash // zero: none is known
	Proved      bool
	Word        string // whose word it is that it was settled, as long as nothing proves it; empty: nobody's
	False       bool   // that word proved to be so
	Dropped     bool   // what proved it is not on the chain now, and may come back
	TakenBack   bool   // what proved it is not on the chain any more, and never will be
}

// A Refund is money on its way back.
type Refund struct {
	Network     string
	Asset       common.Address
	To          common.Address
	Amount      money.Amount
	State       refund.State
	Transaction common.Hash // once confirmed
	Why         string
}

// Served says whether the answer is the service's own.
func (a Answer) Served() bool { return a.Outcome == call.Served && a.Reason == call.OK }

// refused is the answer to a refusal before any money moved.
func refused(no *refusal.Error, now time.Time) Answer {
	a := Answer{Reason: no.Reason, Detail: no.Detail, Fields: no.Fields, Charged: ChargedNo, Err: no.Cause}
	if row, ends := call.RowOf(no.Reason); ends {
		a.Outcome = row.Outcome
	}
	if !no.Until.IsZero() {
		a.RetryAfter = max(time.Second, no.Until.Sub(now))
	}
	return a
}

// Paid shows the payment of a call; nil where none was claimed.
func (r Record) Paid() *Payment {
	if r.Network == "" {
		return nil
	}
	return &Payment{Network: r.Network, Asset: r.Asset, Payer: r.Payer, Amount: r.Amount, Transaction: r.Transaction, Proved: r.Proved, Word: r.Word, False: r.False,
		Dropped: r.Dropped, TakenBack: r.TakenBack}
}

// Returning shows the money on its way back; nil where none is.
func (r Record) Returning() *Refund {
	if r.Refund == nil {
		return nil
	}
	p := r.Refund.Payment
	return &Refund{Network: p.Network, Asset: p.Asset, To: p.Payer, Amount: p.Amount, State: r.Refund.State,
		Transaction: r.Refund.Transaction, Why: r.Refund.Why}
}
