package source

import (
	"context"
	"errors"
)

// A Block hands out units one by one of what was reserved together, for a source that is asked many times a second, such as a node. It asks the database once
// a block where the source is metered or guarded, and otherwise only while the source is known to be out. A process that is killed loses the rest of its
// block, so that the day counts a little more than was used.
type Block struct {
	m    *Meter
	size int64
	turn chan struct{} // holds one while nobody reserves

	// Guarded by m.mu:
	grant *Grant
	left  int64
}

// Block returns a way to reserve in blocks of this size.
func (m *Meter) Block(size int64) *Block {
	b := &Block{m: m, size: max(1, size), turn: make(chan struct{}, 1)}
	b.turn <- struct{}{}
	m.mu.Lock()
	m.blocks = append(m.blocks, b)
	m.mu.Unlock()
	return b
}

// Take is Meter.Reserve, mostly without asking the database.
func (b *Block) Take(ctx context.Context, class Class, n int64) (*Grant, error) {
	g, err := b.take(ctx, class, n)
	limit, denied := errors.AsType[*LimitError](err)
	if denied {
		b.m.deny(ctx, limit, b.m.use(class), n)
	}
	b.m.observe(class, err)
	return g, err
}

func (b *Block) take(ctx context.Context, class Class, n int64) (*Grant, error) {
	if g := b.fromMemory(n); g != nil {
		return g, nil
	}
	select { // one refills for all who wait
	case <-b.turn:
		defer func() { b.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if g := b.fromMemory(n); g != nil {
		return g, nil
	}
	seen, at := b.m.look()
	if why, until := seen.waits(at); why != 0 {
		return nil, b.m.limit(why, until, at)
	}
	b.end()
	if seen.stops() || !b.counts() {
		return b.m.reserve(ctx, b.m.use(class), n)
	}
	g, err := b.m.reserve(ctx, b.m.use(class), max(b.size, n))
	if limit, denied := errors.AsType[*LimitError](err); denied && limit.Why == Guarded && n < b.size {
		return b.m.reserve(ctx, b.m.use(class), n) // less than a block is left
	}
	if err != nil || g.tests {
		return g, err
	}
	b.m.mu.Lock()
	b.grant, b.left = g, g.left
	b.m.mu.Unlock()
	if one := b.fromMemory(n); one != nil {
		return one, nil
	}
	return g, nil
}

// counts says whether units are counted at all.
func (b *Block) counts() bool { return b.m.of.Metered || b.m.of.Guard.Floor > 0 }

// fromMemory is a grant that needs no statement; nil where there is none. Of the block of another day nothing is handed out: it would be counted on that day.
func (b *Block) fromMemory(n int64) *Grant {
	now := b.m.r.now()
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	seen, at := b.m.seen, now.Add(b.m.skew)
	if seen.stops() || at.Before(seen.nextRequestAt) {
		return nil
	}
	g := &Grant{m: b.m, began: now, recovers: seen.recovering(at)}
	if !b.counts() {
		return g
	}
	if b.grant == nil || b.left < n || !b.grant.day.Equal(dayOf(at)) {
		return nil
	}
	b.left -= n
	g.day, g.left = b.grant.day, n
	return g
}

// end gives back what is left of the block.
func (b *Block) end() {
	b.m.mu.Lock()
	grant, left := b.grant, b.left
	b.grant, b.left = nil, 0
	b.m.mu.Unlock()
	if grant != nil && left > 0 {
		b.m.collect(grant.day, sum{back: left})
	}
}

func (m *Meter) endBlocks() {
	m.mu.Lock()
	blocks := m.blocks
	m.mu.Unlock()
	for _, b := range blocks {
		b.end()
	}
}
