package upstream

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"market/internal/call"
)

const (
	// tasteTime is how long the body of an answer that failed is waited for, beside what the call has left. The answer is known by then, so nobody
	// waits for words about it.
	tasteTime = 500 * time.Millisecond
	// tastedMax is how much of a body is kept to make a text of it: more than the text may have, so that what is hidden at its end is seen whole.
	tastedMax      = serviceAnswerMax + utf8.UTFMax
	contentTypeMax = 100
)

// A tasting is what was seen of the body of one answer: how it begins, and a digest of a little more.
type tasting struct {
	contentType string
	packed      bool // its bytes are no text before they are unpacked
	head        []byte
	hash        hash.Hash
	bytes       int64
	whole       bool      // nothing came after that
	broken      bool      // it broke off within the head
	known       time.Time // when all was there that the call waits for: what came later was read out of curiosity; zero: nothing did
}

func newTasting(response *http.Response) *tasting {
	encoding, ok := ContentEncoding(response.Header)
	return &tasting{contentType: response.Header.Get("Content-Type"), packed: encoding != "" || !ok, hash: sha256.New()}
}

// see takes the next piece of the body.
func (t *tasting) see(piece []byte) {
	if room := tastedMax - len(t.head); room > 0 {
		t.head = append(t.head, piece[:min(room, len(piece))]...)
	}
	if room := call.HashedMax - t.bytes; room > 0 {
		_, _ = t.hash.Write(piece[:min(room, int64(len(piece)))]) // of a hash: it never fails
	}
	t.bytes += int64(len(piece))
}

// read takes from a body until so many bytes were seen. It returns false where no more can come: the body is over, or broke off.
func (t *tasting) read(body io.Reader, most int64) bool {
	var piece [4 << 10]byte
	for t.bytes < most {
		n, err := body.Read(piece[:min(int64(len(piece)), most-t.bytes)])
		t.see(piece[:n])
		if err != nil {
			t.whole = errors.Is(err, io.EOF)
			t.broken = !t.whole && t.bytes < tastedMax
			return false
		}
	}
	return true
}

// tasteOf reads what comes at once of the body of an answer that failed. Where the caller is to be told what the service said, that much is waited
// for as long as the call has time. stop ends the request, and with it a body that does not come.
func tasteOf(response *http.Response, told bool, stop func()) *tasting {
	t := newTasting(response)
	if told && !t.read(response.Body, tastedMax) {
		return t
	}
	t.known = time.Now()
	defer time.AfterFunc(tasteTime, stop).Stop()
	t.read(response.Body, call.HashedMax+1)
	return t
}

// said is what is kept of it.
func (t *tasting) said(m mask) call.Said {
	s := call.Said{ContentType: asText(m.bytes([]byte(t.contentType)), contentTypeMax), Bytes: t.bytes, Cut: !t.whole}
	if t.bytes == 0 {
		return s
	}
	s.SHA256 = t.hash.Sum(nil)
	if t.packed {
		return s // whoever unpacks it could find in it what is to be hidden
	}
	body := m.bytes(t.head)
	if !t.whole || t.bytes > int64(len(t.head)) {
		body = wholeRunes(m.cut(body))
	}
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 {
		s.Snippet = asText(body, call.SnippetMax)
	}
	return s
}

// wholeRunes takes the beginning of a letter off the end of a text that was cut anywhere.
func wholeRunes(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// asText replaces what changes the text around it, such as control characters and marks of direction, and cuts the rest.
func asText(b []byte, most int) string {
	text := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
			return utf8.RuneError
		}
		return r
	}, strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\r\n", "\n"))
	if len(text) <= most {
		return text
	}
	return string(wholeRunes([]byte(text[:most])))
}
