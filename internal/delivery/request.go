package delivery

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/payment"
	"market/internal/refusal"
	"market/internal/upstream"
)

// RequestBytesMax is the largest body that a caller may send.
const RequestBytesMax = 1 << 20

// A Request is what the door hands over: a matched route and what came with it.
type Request struct {
	Target   catalog.Target
	Method   string
	RawQuery string
	Header   http.Header
	Body     *Body
	Source   netip.Addr // of the caller, after configured proxies
	// Scanner says that one of our own scanners asks: it showed its key.
	Scanner bool
	// Stranger says that Source is not known to be the caller's own: see Path.originOf.
	Stranger bool
	// Responder takes the answer of an endpoint that streams; nil where the caller's connection can carry no stream.
	Responder Responder
	trial     bool
	// wallet is whose key signed the payment, or signed in to a trial call; zero: nobody's is known.
	wallet common.Address
}

// A Body is read once, when the first step needs it, and never past RequestBytesMax.
type Body struct {
	from  io.Reader
	read  bool
	bytes []byte
	err   error
}

// NewBody wraps a request's body; nil is an empty one.
func NewBody(from io.Reader) *Body {
	if from == nil {
		from = bytes.NewReader(nil)
	}
	return &Body{from: from}
}

// errTooLarge is a body past RequestBytesMax.
var errTooLarge = errors.New("request body too large")

// Bytes returns the whole body.
func (b *Body) Bytes() ([]byte, error) {
	if b.read {
		return b.bytes, b.err
	}
	b.read = true
	b.bytes, b.err = io.ReadAll(io.LimitReader(b.from, RequestBytesMax+1))
	if b.err == nil && len(b.bytes) > RequestBytesMax {
		b.bytes, b.err = nil, errTooLarge
	}
	return b.bytes, b.err
}

// inputOf is the caller's input as it came.
func inputOf(r Request) (catalog.Input, error) {
	body, err := r.Body.Bytes()
	return catalog.Input{Params: r.Target.Params, RawQuery: r.RawQuery, ContentType: r.Header.Get("Content-Type"), Body: body}, err
}

// classify says whether the caller's input is acceptable. What the listing promises to take is the schema of its endpoint.
func classify(r Request) *refusal.Error {
	if no := carried(r); no != nil {
		return no
	}
	in, err := inputOf(r)
	if errors.Is(err, errTooLarge) {
		return refusal.New(call.InputTooLarge, "the body is larger than %d bytes", RequestBytesMax)
	}
	if err != nil {
		return refusal.New(call.InputInvalid, "the body did not arrive whole").WithCause(err)
	}
	// Bytes that nobody here has to read go on as they are, with their label; an input that is checked has to be readable.
	switch encoding, ok := upstream.ContentEncoding(r.Header); {
	case !ok:
		return refusal.New(call.InputInvalid, "the Content-Encoding of the request can't be read")
	case encoding != "" && r.Target.Endpoint.ChecksInput():
		return refusal.New(call.InputInvalid, "this endpoint's input is checked, so it must be sent without a Content-Encoding")
	}
	if err := r.Target.Endpoint.CheckInput(in); err != nil {
		var no *refusal.Error
		if errors.As(err, &no) {
			return no
		}
		return refusal.New(call.InputInvalid, "the input could not be checked").WithCause(err)
	}
	return nil
}

// fingerprint is what a payment is bound to at its first use: the service, the endpoint, the method, the path as it was matched, the
// query in canonical order and the body. ok is false where the body did not arrive.
func fingerprint(r Request) (print payment.Fingerprint, ok bool) {
	body, err := r.Body.Bytes()
	if err != nil {
		return payment.Fingerprint{}, false
	}
	h := sha256.New()
	for _, part := range [][]byte{
		r.Target.Service.ID[:], r.Target.Endpoint.ID[:], []byte(r.Method), []byte(r.Target.UpstreamPath), []byte(canonicalQuery(r.RawQuery)), body,
	} {
		// A length before each part, so that no two requests share one byte string.
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		h.Write(part)
	}
	h.Sum(print[:0])
	return print, true
}

// canonicalQuery sorts the pairs by name and keeps the order of equal names, which may mean something to the service.
func canonicalQuery(raw string) string {
	if raw == "" {
		return ""
	}
	pairs := strings.Split(raw, "&")
	slices.SortStableFunc(pairs, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return strings.Compare(nameA, nameB)
	})
	return strings.Join(pairs, "&")
}
