package source

import "context"

// A Meter is what is known of one source, and the way to ask it. It may be used by many at once.
type Meter struct {
	r  *Registry
	of Source
}

// Source returns whose meter it is.
func (m *Meter) Source() Source { return m.of }

// Ready says from memory what a reservation would meet now: nil, or a *LimitError. It may be late by a notification.
func (m *Meter) Ready() error { return nil }

// Reserve sets n units aside, or says with a *LimitError until when it may not. n may be 0: whether the source is worth asking.
func (m *Meter) Reserve(ctx context.Context, class Class, n int64) (*Grant, error) {
	return &Grant{m: m}, nil
}

// Block returns a way to reserve in blocks, for a source that is asked many times a second.
func (m *Meter) Block(size int64) *Block { return &Block{m: m} }
