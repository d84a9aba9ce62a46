package upstream

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"market/internal/catalog"
)

const (
	serviceAnswerMax = 4 << 10
	retryAfterMax    = 10 * time.Minute
	unpackedBytesMax = 1 << 20 // the largest answer that any listing may allow
)

// errUnpackedTooLarge is an answer that grows past what may be looked at.
var errUnpackedTooLarge = errors.New("unpacked answer too large")

// checkOutput compares an answer with the endpoint's output schema. The service was asked for an answer without encoding; gzip is read
// anyway, because servers that compress everything are common and not dishonest. It keeps a processor busy, so more of it at once would be no
// faster and hold more.
func (c *Client) checkOutput(e *catalog.Endpoint, encoding string, body []byte) error {
	c.checks <- struct{}{}
	defer func() { <-c.checks }()
	switch strings.ToLower(encoding) {
	case "":
		return e.CheckOutput(body)
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("unpack answer: %w", err)
		}
		unpacked, err := io.ReadAll(io.LimitReader(z, unpackedBytesMax+1))
		if err != nil {
			return fmt.Errorf("unpack answer: %w", err)
		}
		if len(unpacked) > unpackedBytesMax {
			return errUnpackedTooLarge
		}
		return e.CheckOutput(unpacked)
	}
	return fmt.Errorf("answer has the encoding %q, which was not asked for", encoding)
}

// serviceAnswer is what a service says when it turns a request down. Only what can be shown in a JSON document is kept; an answer
// that can't be read in time loses its text and stays what it is.
func serviceAnswer(t *tasting, m mask) []byte {
	if t.packed || t.broken || len(t.head) == 0 {
		return nil // what is packed is not a text; whoever unpacks it could find in it what is to be hidden
	}
	body := t.head
	whole := len(body) <= serviceAnswerMax
	if body = m.bytes(body); !whole {
		body = m.cut(body)
	}
	if len(body) <= serviceAnswerMax && json.Valid(body) && utf8.Valid(body) {
		return body
	}
	if len(body) > serviceAnswerMax {
		end := serviceAnswerMax
		for end > 0 && !utf8.RuneStart(body[end]) {
			end--
		}
		body = body[:end]
	}
	if !utf8.Valid(body) || bytes.ContainsFunc(body, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
	}) {
		return nil
	}
	return body
}

// drain reads a short body whose end is announced, so that the connection can be used again. Nobody waits for any other.
func drain(response *http.Response) {
	if response.ContentLength >= 0 && response.ContentLength <= serviceAnswerMax {
		_, _ = io.CopyN(io.Discard, response.Body, response.ContentLength)
	}
}

// retryAfter reads either form of Retry-After: seconds or a date. What is malformed or past is no wait; a long one is cut.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(retryAfterMax/time.Second) {
			return retryAfterMax // digits that do not fit are a long wait, too
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), retryAfterMax)
}
