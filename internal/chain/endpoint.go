package chain

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/sync/singleflight"
)

// patience is what an endpoint gets at least before another one is tried in its place: below it the caller's own time is the reason.
const patience = 500 * time.Millisecond

// An endpoint is one RPC URL of a network.
type endpoint struct {
	place int // in the list, from 1: its name in errors, which the URL would give the key away to
	rpc   *rpc.Client
	gate  Gate

	taking singleflight.Group // one look at it before it is used, for all who wait

	// Under the lock of its Node:

	identified bool      // it has named the right chain
	failures   int       // in a row
	failedAt   time.Time // the last of them
	restsUntil time.Time
	said       uint64 // the last head that it named
}

func dialEndpoint(url string, answerMax int64) (*rpc.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64  // the default of 2 closes most connections under load
	transport.DisableCompression = true // answers are small, and what arrives is what answerMax counts
	client := &http.Client{
		Transport: limited{transport, answerMax},
		// An endpoint's URL often holds its key, which a redirect would carry elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	// It connects with the first call.
	conn, err := rpc.DialOptions(context.Background(), url, rpc.WithHTTPClient(client))
	if err != nil {
		return nil, clean(err)
	}
	return conn, nil
}

// A question is one round trip. Any endpoint may be asked it again: we only read, and a raw transaction is the same bytes wherever it is shown,
// which the chain takes once.
type question struct {
	elements []rpc.BatchElem
	single   bool // the one element goes without a batch around it
	needed   bool // an endpoint that answers one of them with an error should not be used
	// fits looks at the results: an error means that an endpoint which says such a thing should not be used. Nil takes everything.
	fits func(by *endpoint) error
}

func (q question) method() string {
	if q.single {
		return q.elements[0].Method
	}
	return "batch"
}

// put asks one endpoint. What an earlier one left is taken away first. An error means that there is no answer to any of the calls.
func (q question) put(ctx context.Context, conn *rpc.Client) error {
	for i := range q.elements {
		q.elements[i].Error = nil
		reflect.ValueOf(q.elements[i].Result).Elem().SetZero()
	}
	if !q.single {
		return conn.BatchCallContext(ctx, q.elements)
	}
	e := &q.elements[0]
	err := conn.CallContext(ctx, e.Result, e.Method, e.Args...)
	if _, answered := errors.AsType[rpc.Error](err); answered {
		e.Error, err = err, nil
	}
	return err
}

// faults returns why the elements are no answer of a node that works, and what the endpoint said by them.
func (q question) faults(e *endpoint, said *Said) error {
	for i := range q.elements {
		err := q.elements[i].Error
		if err == nil {
			continue
		}
		q.elements[i].Error = troubleOf(q.elements[i].Method, err)
		answered, ok := errors.AsType[*answerError](q.elements[i].Error)
		if !ok {
			return clean(err) // no result, or one of another form
		}
		if said.Code == 0 && !answered.ofContract() {
			said.Code, said.Text = answered.code, answered.text
		}
	}
	switch {
	case said.Code == internalCode, said.Code != 0 && q.needed:
		return &answerError{code: said.Code, text: said.Text}
	case said.Code != 0 || q.fits == nil:
		return nil
	}
	return q.fits(e)
}

// internalCode is JSON-RPC's for an error of the node itself, which another node may not have.
const internalCode = -32603

// ofContract says whether an error may be worded by a contract.
func (e *answerError) ofContract() bool {
	_, reverted := errors.AsType[*Revert](revertOr(e))
	return reverted || strings.Contains(strings.ToLower(e.text), "revert")
}

// roundTrip asks one endpoint, others being there to ask after it. Without an error the elements hold what it said; any error but an *unfitError ends
// the question.
func (n *Node) roundTrip(ctx context.Context, e *endpoint, q question, others int) error {
	began := n.now()
	turn, err := e.gate.Begin(ctx, len(q.elements))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &unfitError{e.place, err, true}
	}
	asking, cancel := turnOf(ctx, others)
	defer cancel()
	var heard heard
	err = q.put(context.WithValue(asking, heardKey{}, &heard), e.rpc)
	// The turn ends whatever becomes of the caller.
	ending := context.WithoutCancel(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		_ = turn.End(ending, Said{Err: ctx.Err()}) // the endpoint is not to blame, and nobody waits
		return ctx.Err()
	case errors.Is(err, errTooLarge):
		// Who words a large answer may be a stranger, so no endpoint is left for it.
		_ = turn.End(ending, Said{})
		return errTooLarge
	}
	said, fault := heard.said(err), clean(err)
	switch {
	case err == nil:
		fault = q.faults(e, &said)
	case asking.Err() != nil:
		fault = errSlow
	}
	said.Err = fault
	if no := turn.End(ending, said); no != nil {
		n.failed(e, began)
		return &unfitError{e.place, no, true}
	}
	if fault != nil {
		n.failed(e, began)
		return &unfitError{e.place, fault, false}
	}
	n.worked(e, began)
	return nil
}

var errSlow = errors.New("no answer within its time")

// turnOf is the time of one round trip: callTime, and where the caller's is shorter, half of it as long as others can be asked in the rest.
func turnOf(ctx context.Context, others int) (context.Context, context.CancelFunc) {
	limit := callTime
	if deadline, ends := ctx.Deadline(); ends && others > 0 {
		if half := time.Until(deadline) / 2; half >= patience {
			limit = min(limit, half)
		}
	}
	return context.WithTimeout(ctx, limit)
}

// startMax is how much of an answer is kept in case that it is none.
const startMax = 1 << 10 // bytes

// heard is what the client of go-ethereum does not pass on.
type heard struct {
	retryAfter time.Duration
	start      []byte // of the body
}

type heardKey struct{}

// hear keeps what is lost otherwise, for whoever asked under the context.
func hear(r *http.Request, response *http.Response) *heard {
	h, _ := r.Context().Value(heardKey{}).(*heard)
	if h == nil {
		return nil
	}
	// A date is not worth a clock that is not ours.
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); err == nil {
		h.retryAfter = time.Duration(seconds) * time.Second //nolint:gosec // below 2^31
	}
	return h
}

func (h *heard) keep(part []byte) {
	if h != nil {
		h.start = append(h.start, part[:min(len(part), startMax-len(h.start))]...)
	}
}

// said reads an error of a whole round trip. An endpoint that refuses a batch may answer with one error object for all of it.
func (h *heard) said(err error) (s Said) {
	if refused, ok := errors.AsType[rpc.HTTPError](err); ok {
		s.Status, s.RetryAfter = refused.StatusCode, h.retryAfter
		s.Text = line(string(refused.Body[:min(len(refused.Body), textMax)]))
	}
	if err == nil {
		return s
	}
	var object struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(h.start, &object) == nil && object.Error.Code != 0 {
		s.Code, s.Text = object.Error.Code, line(object.Error.Message)
	}
	return s
}
