package answer

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"market/internal/call"
	"market/internal/secretbox"
)

const (
	// BodyBytesMax is the largest body that is kept; no buffered endpoint may answer with more.
	BodyBytesMax = 1 << 20

	headerBytesMax = 64 << 10 // as JSON
	lengthBytes    = 4
)

// ErrTooLarge is an answer that can not be kept.
var ErrTooLarge = errors.New("answer too large to keep")

// An Answer is what went out: the service's status, those of its headers that may be passed on, and its body.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Store keeps answers. Methods that read or write rows take the caller's db.
type Store struct{ box secretbox.Box }

// NewStore returns a store that seals with the box.
func NewStore(box secretbox.Box) Store { return Store{box} }

// Seal returns the header and the body for column sealed. They open for this call and status only.
func (s Store) Seal(id call.ID, a Answer) ([]byte, error) {
	header, err := json.Marshal(a.Header)
	if err != nil {
		return nil, fmt.Errorf("seal answer of call %s: %w", id, err)
	}
	if len(header) > headerBytesMax || len(a.Body) > BodyBytesMax {
		return nil, fmt.Errorf("seal answer of call %s: header %d, body %d bytes: %w", id, len(header), len(a.Body), ErrTooLarge)
	}
	plain := make([]byte, 0, lengthBytes+len(header)+len(a.Body))
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(header))) //nolint:gosec // headerBytesMax bounds it
	plain = append(append(plain, header...), a.Body...)
	sealed, err := s.box.Seal(plain, contextOf(id, a.Status))
	if err != nil {
		return nil, fmt.Errorf("seal answer of call %s: %w", id, err)
	}
	return sealed, nil
}

// Open returns a kept answer. An error means that the row was tampered with or that its key is gone.
func (s Store) Open(k Kept) (Answer, error) {
	plain, err := s.box.Open(k.Sealed, contextOf(k.Call, k.Status))
	if err != nil {
		return Answer{}, fmt.Errorf("open answer of call %s: %w", k.Call, err)
	}
	if len(plain) < lengthBytes {
		return Answer{}, fmt.Errorf("open answer of call %s: %d bytes", k.Call, len(plain))
	}
	length, rest := int64(binary.BigEndian.Uint32(plain)), plain[lengthBytes:]
	if length > int64(len(rest)) {
		return Answer{}, fmt.Errorf("open answer of call %s: a header of %d bytes in %d", k.Call, length, len(rest))
	}
	a := Answer{Status: k.Status, Body: rest[length:]}
	if err := json.Unmarshal(rest[:length], &a.Header); err != nil {
		return Answer{}, fmt.Errorf("open answer of call %s: %w", k.Call, err)
	}
	return a, nil
}

// contextOf binds an answer to its row, so that nobody who can write to the database gives one caller's answer to another.
func contextOf(id call.ID, status int) []byte {
	return fmt.Appendf(nil, "answer %s %d", id, status)
}
