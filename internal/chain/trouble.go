package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/ethereum/go-ethereum/rpc"
)

// textMax is how much of a text of the node or a contract is kept.
const textMax = 200 // bytes

// Trouble means that the node could not be asked, refused the question or did not answer sensibly. It says nothing about the payment.
// Its text has neither the node's URL, which may hold a key, nor more than a line of what the node wrote.
type Trouble struct {
	Method string
	Err    error
}

func (t *Trouble) Error() string { return "node: " + t.Method + ": " + t.Err.Error() }

func (t *Trouble) Unwrap() error { return t.Err }

// An answerError is the node's own error object.
type answerError struct {
	code int
	text string
	data any // as JSON decodes it
}

func (e *answerError) Error() string { return fmt.Sprintf("%s (code %d)", e.text, e.code) }

func troubleOf(method string, err error) *Trouble { return &Trouble{Method: method, Err: clean(err)} }

// clean keeps the kind of an error and drops what may be long, secret or hostile.
func clean(err error) error {
	var (
		answered rpc.Error
		refused  rpc.HTTPError
		request  *url.Error
	)
	switch {
	case errors.As(err, &answered):
		e := &answerError{code: answered.ErrorCode(), text: line(answered.Error())}
		var withData rpc.DataError
		if errors.As(err, &withData) {
			e.data = withData.ErrorData()
		}
		return e
	case errors.As(err, &refused):
		return fmt.Errorf("HTTP status %d", refused.StatusCode)
	case errors.As(err, &request):
		return clean(request.Err)
	}
	return err
}

// line makes a text fit for a log: one line, printable, bounded.
func line(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), textMax)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// errTooLarge is an answer past the limit.
var errTooLarge = errors.New("the answer is too large")

// limited caps each answer, so that a hostile node cannot fill the memory. A request may set a lower cap.
type limited struct {
	next http.RoundTripper
	max  int64 // bytes
}

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	most := l.max
	if lower, ok := r.Context().Value(capKey{}).(int64); ok {
		most = min(most, lower)
	}
	response.Body = &limitedBody{ReadCloser: response.Body, left: most, heard: hear(r, response)}
	return response, nil
}

type capKey struct{}

// capped lowers the cap of the answers that are waited for under the context.
func capped(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, capKey{}, bytes)
}

type limitedBody struct {
	io.ReadCloser
	left  int64
	heard *heard // keeps the beginning; nil: nobody wants it
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.heard.keep(p[:n])
	return n, err
}
