package desk

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/payment"
	"market/internal/refusal"
)

// A verification is the body of every answer of /verify.
type verification struct {
	IsValid        bool         `json:"isValid"`
	InvalidReason  payment.Code `json:"invalidReason,omitempty"`
	InvalidMessage string       `json:"invalidMessage,omitempty"`
	Payer          string       `json:"payer,omitempty"`
}

// A settlement is the body of every answer of /settle.
type settlement struct {
	payment.SettleResponse        // its network is spelt as the request spells it
	ErrorMessage           string `json:"errorMessage,omitempty"`
}

// A refused request gets the body of a no, whatever its status: official clients read the code from it.
type refused struct {
	status  int
	code    payment.Code
	message string
	wait    time.Duration // zero: waiting does not help
	err     error         // for the log
}

func (r *refused) Error() string { return string(r.code) + ": " + r.message }
func (r *refused) Unwrap() error { return r.err }

// waitAfterTrouble is how long we ask to be left alone when something of ours does not work.
const waitAfterTrouble = 5 * time.Second

// trouble is something of ours that does not work. What it is stands in the log alone.
func trouble(code payment.Code, err error) *refused {
	return &refused{status: http.StatusServiceUnavailable, code: code, message: "Something of ours does not work at the moment. Nothing was decided.",
		wait: waitAfterTrouble, err: err}
}

// messageBytesMax is what official clients keep of a message.
const messageBytesMax = 500

// asNo turns an error into what is told. A refusal keeps its code and its words: 400 where the request could not be read, and 200 for what was
// decided. Anything else is trouble.
func asNo(err error, otherwise payment.Code) *refused {
	if r, ok := errors.AsType[*refused](err); ok {
		return r
	}
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		status := http.StatusOK
		if no.Reason == call.PaymentMalformed {
			status = http.StatusBadRequest
		}
		return &refused{status: status, code: payment.CodeOfError(err), message: no.Detail[:min(len(no.Detail), messageBytesMax)]}
	}
	return trouble(otherwise, err)
}

// writeVerification answers /verify. A nil error is a yes.
func writeVerification(c echo.Context, rq request, err error) error {
	l := logOf(c)
	if err == nil {
		return writeJSON(c, http.StatusOK, verification{IsValid: true, Payer: payerOf(rq)})
	}
	no := asNo(err, payment.CodeUnexpected)
	code := spell(rq.payload.Version, no.code)
	l.code, l.err = code, no.err
	setWait(c, no.wait)
	return writeJSON(c, no.status, verification{InvalidReason: code, InvalidMessage: no.message, Payer: payerOf(rq)})
}

// writeSettlement answers /settle.
func writeSettlement(c echo.Context, rq request, transaction common.Hash, err error) error {
	l := logOf(c)
	answer := settlement{SettleResponse: payment.SettleResponse{Success: err == nil, Network: rq.required.Network, Payer: payerOf(rq)}}
	if transaction != (common.Hash{}) {
		answer.Transaction = transaction.Hex()
	}
	l.transaction = answer.Transaction
	if err == nil {
		return writeJSON(c, http.StatusOK, answer)
	}
	no := asNo(err, payment.CodeSettle)
	answer.ErrorReason, answer.ErrorMessage = spell(rq.payload.Version, no.code), no.message
	l.code, l.err = answer.ErrorReason, no.err
	setWait(c, no.wait)
	return writeJSON(c, no.status, answer)
}

// payerOf is empty where the request could not be read.
func payerOf(rq request) string {
	if rq.payload.From == (common.Address{}) {
		return ""
	}
	return rq.payload.From.Hex()
}

func setWait(c echo.Context, wait time.Duration) {
	if wait > 0 {
		c.Response().Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
}

// writeJSON writes a document that no cache may keep.
func writeJSON(c echo.Context, status int, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	// A client that does not read holds up a stop, and a connection, no longer. A writer without a deadline, as in tests, needs none.
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(writeTime))
	return c.Blob(status, echo.MIMEApplicationJSON, body)
}

// decided is a no with HTTP 200.
func decided(code payment.Code, message string, err error) *refused {
	return &refused{status: http.StatusOK, code: code, message: message, err: err}
}

// A stray is an answer to a request that none of the routes is for, or that ended in a panic.
type stray struct {
	Error string `json:"error"`
}

// writeStray is echo's error handler. What went wrong inside is in the log alone.
func writeStray(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status, text := http.StatusInternalServerError, "something went wrong on our side"
	if he, ok := errors.AsType[*echo.HTTPError](err); ok && he.Code < http.StatusInternalServerError {
		status, text = he.Code, "this facilitator has POST /verify, POST /settle and GET /supported"
	}
	logOf(c).err = err
	if err := writeJSON(c, status, stray{text}); err != nil {
		logOf(c).err = err
	}
}
