package config

import (
	"fmt"
	"io"
)

// A Secret is a value that no log, error or dump shows. It is kept behind a pointer, because fmt prints an unexported field of somebody
// else's struct without asking its methods.
type Secret struct{ value *string }

// NewSecret hides a value.
func NewSecret(value string) Secret { return Secret{&value} }

// Reveal returns the value; empty where there is none. Call it only where the value is used.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// UnmarshalText hides what the environment says.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// shown tells only whether there is a value.
func (s Secret) shown() string {
	if s.Reveal() == "" {
		return "(none)"
	}
	return "(secret)"
}

func (s Secret) String() string { return s.shown() }

// GoString is what %#v prints.
func (s Secret) GoString() string { return s.shown() }

// Format covers every other verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.shown()) }

// MarshalText is what JSON and structured logs show.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

// MarshalJSON is the same for encoders that ask for it first.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.shown() + `"`), nil }
