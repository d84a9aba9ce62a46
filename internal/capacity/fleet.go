package capacity

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// A fleet is who is alive, as one replica last saw it. Two replicas never use the same share at once:
//
//   - One that was not seen for aliveFor is dead to the others, which then use its share. So it uses none from that moment on, and when it is
//     seen again it has come anew.
//   - One that comes waits for aliveFor. By then whoever uses a share has seen it, and divides by one more.
//
// One that finds no other in the table when it comes waits for nobody: whoever is not in it uses nothing. It does not go on without the database
// either: others may come meanwhile, and no call could be claimed.
type fleet struct {
	members  []uuid.UUID
	seen     time.Time // when this replica was last surely alive to the others
	joined   time.Time // from when on it uses its share
	aliveFor time.Duration
}

// next is the fleet after a heartbeat that was sent, and after which the members were read.
func (f fleet) next(self uuid.UUID, members []uuid.UUID, sent, read time.Time) fleet {
	next := fleet{members: members, seen: sent, joined: f.joined, aliveFor: f.aliveFor}
	switch {
	case len(members) == 1 && members[0] == self:
		next.joined = read
	case f.seen.IsZero() || read.Sub(f.seen) > f.aliveFor || !slices.Contains(members, self):
		next.joined = read.Add(f.aliveFor)
	}
	return next
}

// sharing says whether this replica may use its share.
func (f fleet) sharing(self uuid.UUID, now time.Time) bool {
	return !f.seen.IsZero() && !now.Before(f.joined) && now.Sub(f.seen) <= f.aliveFor
}
