package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// A Fault is what was wrong with an answer, or with getting one.
type Fault int

const (
	_             Fault = iota
	Unreached           // there was no connection to send anything on, or nothing to send
	Unsupported         // it has not said that it settles on this network, so it was not asked
	TimedOut            // no whole answer came in time
	Broken              // the connection broke
	Redirected          // 3xx: we do not follow it, an authorization is not for whoever is named there
	Turned              // another 4xx: it does not take the request
	Unauthorized        // 401: it does not take our credential. A 403 may be about one payer, so it is Turned
	Unpaid              // 402 without a word about the payment: it wants money from us
	Throttled           // 429
	Failing             // 5xx
	TooLarge            // more than answerMax
	NotJSON             // HTML, nothing, or a part of JSON
	BadShape            // JSON without the members that it has to have, or with others in their place
	NoTransaction       // it names no transaction where there has to be one
	OtherNetwork        // it speaks of another network
	OtherPayer          // it speaks of another payer
	Contradiction       // it says yes and no in one answer
	faultEnd
)

// Faults returns every fault.
func Faults() []Fault {
	var all []Fault
	for f := Unreached; f < faultEnd; f++ {
		all = append(all, f)
	}
	return all
}

func (f Fault) String() string {
	switch f {
	case Unreached:
		return "cannot be reached"
	case Unsupported:
		return "has not said that it settles on this network"
	case TimedOut:
		return "gave no answer in time"
	case Broken:
		return "broke the connection"
	case Redirected:
		return "redirects, which is not followed"
	case Turned:
		return "does not take the request"
	case Unauthorized:
		return "does not take our credential"
	case Unpaid:
		return "wants to be paid"
	case Throttled:
		return "throttles us"
	case Failing:
		return "has trouble of its own"
	case TooLarge:
		return "answers too much"
	case NotJSON:
		return "answers no JSON"
	case BadShape:
		return "answers JSON of another shape"
	case NoTransaction:
		return "names no transaction"
	case OtherNetwork:
		return "speaks of another network"
	case OtherPayer:
		return "speaks of another payer"
	case Contradiction:
		return "says yes and no at once"
	}
	return "fault of no name"
}

// A Trouble is the facilitator's, or that of the way to it: never the payer's and never the service's. Its text holds nothing that the
// facilitator wrote.
type Trouble struct {
	Facilitator string // its name in our configuration
	Call        string // "settle"
	Fault       Fault
	Status      int // of HTTP; 0 where none came
	Err         error
}

func (t *Trouble) Error() string {
	text := fmt.Sprintf("facilitator %s: %s: it %s", t.Facilitator, t.Call, t.Fault)
	if t.Status != 0 {
		text += fmt.Sprintf(" (HTTP status %d)", t.Status)
	}
	if t.Err != nil {
		text += ": " + t.Err.Error()
	}
	return text
}

func (t *Trouble) Unwrap() error { return t.Err }

// Definite says whether the facilitator has said that it does nothing for us on a network: it does not settle there, or it does not take our credential. No
// answer, trouble of its own and whatever is no answer of the protocol say nothing. Only what it says of what it supports is about us; the same status
// beside a payment may be about that payment.
func (t *Trouble) Definite() bool {
	if t.Call != callSupported {
		return false
	}
	switch t.Fault {
	case Unsupported, Unauthorized, Unpaid:
		return true
	case Turned:
		return t.Status == http.StatusForbidden
	}
	return false
}

// A WayError is what the HTTP client says of a request that got no answer.
type WayError struct {
	Text string // one printable line
	Err  error
}

func (e *WayError) Error() string { return e.Text }

func (e *WayError) Unwrap() error { return e.Err }

var errNoAnswer = errors.New("no whole answer came over the connection")

const wayBytesMax = 200

// clean drops the URL from an error of the HTTP client, because some operators have a key in its path. It keeps what the network, TLS or our
// own clock says, in one line: a certificate names whom it likes. Anything else can repeat what the facilitator wrote.
func clean(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	network, isNetwork := errors.AsType[net.Error](err)
	certificate, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF):
		return io.EOF
	case isCertificate:
		return &WayError{line(certificate.Error()), certificate}
	case isNetwork:
		return &WayError{line(network.Error()), network}
	case errors.Is(err, http.ErrSchemeMismatch):
		return http.ErrSchemeMismatch
	}
	return errNoAnswer
}

// line makes a text fit for a log: one line, printable, bounded.
func line(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), wayBytesMax)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
