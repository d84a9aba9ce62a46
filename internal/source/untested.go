package source

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Out says from memory that the source stops us, whether or not its window has ended: what has not worked since it refused is out.
func (m *Meter) Out() bool {
	seen, _ := m.look()
	return seen.stops()
}

// Unasked is that the source was not asked with this grant after all. Where that was to be the test of its window, the next one may test it: else whoever
// comes with something that cannot be shown to it could keep it from being tested, window after window.
func (g *Grant) Unasked(ctx context.Context) {
	if !g.tests {
		return
	}
	g.m.change(ctx, func(ctx context.Context, tx pgx.Tx, s *reading) error {
		if !s.stops() || !s.exhaustedAt.Equal(g.at) {
			return nil // it was tested, or found to work, by somebody else meanwhile
		}
		s.retryAt = s.at
		return s.keep(ctx, tx, g.m.of.Name)
	})
}

// Look says whether an answer looks like one of these refusals.
func Look(shapes []Shape, a Answer) bool {
	return slices.ContainsFunc(shapes, func(s Shape) bool { return s.is(a) })
}
