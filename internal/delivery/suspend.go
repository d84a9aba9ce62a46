package delivery

import (
	"context"

	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/strikes"
)

// suspend marks a delivery that would mean something for its service while strikes are suspended: it is recorded as what it was, and nothing follows.
// The switch is read in the transaction that records it, in a statement of its own after the service's row was locked. So whoever begins to record after
// the switch was set sees it, on whichever replica, and what a memory may be late with decides nothing.
func (r *Recorder) suspend(ctx context.Context, tx pgx.Tx, d Delivery) (Delivery, error) {
	if !r.means(d) {
		return d, nil
	}
	var err error
	d.Suspended, err = r.switches.StrikesSuspended(ctx, tx)
	return d, err
}

// means says whether a delivery speaks against its service: by a strike, by a cooldown, or as one of those by which Holding holds one. A success does
// not; it clears in any case.
func (r *Recorder) means(d Delivery) bool {
	return d.effect() == strikes.Increment || r.rests(d) > 0 || d.Reason == call.RejectedByService && d.Origin.Counts()
}
