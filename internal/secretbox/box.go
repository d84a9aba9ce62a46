package secretbox

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// format is the first byte of everything sealed, so that another way of sealing can be told from this one.
const format = 1

const headerBytes = 1 + len(keyID{})

// Overhead is by how much sealed bytes are longer than what they hold.
const Overhead = headerBytes + 12 + 16

var (
	// ErrNoKey is the zero Box asked to seal.
	ErrNoKey = errors.New("no secret key")
	// ErrUnknownKey is bytes that were sealed with a key that the box does not hold (any more).
	ErrUnknownKey = errors.New("sealed with a key that is not here")
	// ErrNotAuthentic is bytes that nobody sealed like this: damaged, forged, or moved from where they belong.
	ErrNotAuthentic = errors.New("not what was sealed")
)

// A Box seals and opens. It never shows its keys, however it is printed or encoded. It is safe for concurrent use.
type Box struct {
	keys []key // the current one first
}

// Seal encrypts plain for a context, which has to be given again to open it.
func (b Box) Seal(plain, context []byte) ([]byte, error) {
	if len(b.keys) == 0 {
		return nil, ErrNoKey
	}
	k := b.keys[0]
	sealed := append(make([]byte, 0, len(plain)+Overhead), b.Prefix()...)
	return k.aead.Seal(sealed, nil, plain, bind(sealed, context)), nil
}

// Open returns what was sealed for this context.
func (b Box) Open(sealed, context []byte) ([]byte, error) {
	if len(sealed) < Overhead || sealed[0] != format {
		return nil, ErrNotAuthentic
	}
	k, ok := b.named(keyID(sealed[1:headerBytes]))
	if !ok {
		return nil, ErrUnknownKey
	}
	plain, err := k.aead.Open(nil, nil, sealed[headerBytes:], bind(sealed[:headerBytes], context))
	if err != nil {
		return nil, ErrNotAuthentic
	}
	return plain, nil
}

// Prefix is how everything begins that the current key seals; empty for the zero Box. What was sealed with an older key begins otherwise, and so
// can be found in a database that sees no plain text.
func (b Box) Prefix() []byte {
	if len(b.keys) == 0 {
		return nil
	}
	return append([]byte{format}, b.keys[0].id[:]...)
}

// bind puts our own header under the tag too. Its length is fixed, so the two parts can not run into each other.
func bind(header, context []byte) []byte { return append(slices.Clone(header), context...) }

func (b Box) named(id keyID) (key, bool) {
	i := slices.IndexFunc(b.keys, func(k key) bool { return k.id == id })
	if i < 0 {
		return key{}, false
	}
	return b.keys[i], true
}

func (b Box) String() string { return fmt.Sprintf("box with %d keys", len(b.keys)) }

// GoString keeps %#v from walking into the keys.
func (b Box) GoString() string { return b.String() }

// Format answers every verb, %d and %x too, which would otherwise print the fields.
func (b Box) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, b.String()) }

// MarshalText makes every encoder write the same; JSON uses it too.
func (b Box) MarshalText() ([]byte, error) { return []byte(b.String()), nil }
