package notify

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// ErrNoChannel is that there is no channel, or none of that name.
var ErrNoChannel = errors.New("no such channel is configured")

// A Tested message is what became of a test.
type Tested struct {
	Notice  uuid.UUID
	Channel string    // that took it; empty: none did
	Failed  []Attempt // those that were asked before and did not
}

// Channels are the names of the channels, in the order in which they are tried.
func (s *Sender) Channels() []string {
	var names []string
	for _, way := range s.o.Ways {
		names = append(names, way.Name)
	}
	return names
}

// A test is no trouble: it is settled from the beginning, and in nobody's way. The message is leased to whoever asks for it.
const testSQL = `
WITH made AS (
	INSERT INTO notices (id, kind, subject, text, what, effect, calm_since, settled_at) VALUES ($1, 'test', $2, $3, $4, $5, market_now(), market_now())
	RETURNING id
)
INSERT INTO notice_messages (notice_id, phase, leased_until) SELECT id, 'raised', market_now() + $6::interval FROM made`

// Test sends a test message now: by the channel of that name, or where it is empty by the first one that takes it, as any other message. It is not tried
// again by itself.
func (s *Sender) Test(ctx context.Context, channel string) (Tested, error) {
	ways := s.o.Ways
	if channel != "" {
		ways = nil
		for _, way := range s.o.Ways {
			if way.Name == channel {
				ways = []Way{way}
			}
		}
	}
	if len(ways) == 0 {
		return Tested{}, ErrNoChannel
	}
	d := due{uuid.Must(uuid.NewV7()), Raised}
	o := Outage{What: "this is a test of the notices to the operator", Effect: "nothing is wrong: somebody asked for it at /admin/notices, by the API or at a prompt"}
	if _, err := s.db.Exec(ctx, testSQL, d.Notice, d.Notice.String(), o.Text(), o.What, o.Effect, lease); err != nil {
		return Tested{}, fmt.Errorf("make a test notice: %w", err)
	}
	p, err := s.store.pending(ctx, s.db, d)
	if err != nil {
		return Tested{}, err
	}
	t, err := s.try(ctx, p, ways)
	if err != nil {
		return Tested{}, err
	}
	result := Tested{Notice: d.Notice, Channel: t.taken, Failed: t.attempts}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	if t.taken != "" {
		return result, s.keep(ctx, p, t)
	}
	_, err = s.store.putOff(ctx, s.db, d, delay{why: t.why(), failures: 1, forGood: true})
	s.o.Counted(Test, ResultFailed)
	return result, err
}
