package delivery

import (
	"context"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/refund"
)

// A Delivery says how a call ended: the values from which everything that follows is decided.
type Delivery struct {
	ID       uuid.UUID
	Call     call.ID
	Trial    bool
	Service  uuid.UUID
	Endpoint uuid.UUID
	Outcome  call.Outcome
	Reason   call.Reason
	Party    call.Party
	Origin   call.Origin
	AskedAt  time.Time // as the database wrote it; zero: the service was not asked
	Status   int       // of the upstream; zero: none came
	Latency  time.Duration
	// RetryAfter is what a throttling service asked for; zero where it asked for nothing.
	RetryAfter time.Duration
	Method     string
	Path       string
	Source     netip.Addr
	Payer      common.Address // zero for a trial
	Detail     string         // for people; nothing reads it back
	Replica    uuid.UUID      // the process that walked the call; zero: none of these did
	Error      string         // of a failure: the kind of error in a few words of ours, as upstream names it
	Said       call.Said      // of a failure: what came back
	Excused    uuid.UUID      // the outage of ours that it was taken for; zero: none
	// Suspended says that strikes were suspended when it was recorded: what it would have meant for its service, it does not mean, then or later.
	Suspended bool
	// Refund is what the caller gets back; nil where the caller pays, or never paid.
	Refund *refund.Owed

	sealed []byte        // the served answer, encrypted; nil where none is kept
	kept   time.Duration // how long it can be fetched again; zero: as the configuration says
	owner  uuid.UUID     // who walks the call; zero: nobody, and its lease has run out
	grace  time.Duration // beyond the lease, for a call that nobody walks
	// also is written in the transaction that owes the refund; nil: nothing is.
	also func(ctx context.Context, tx pgx.Tx) error
}

// newDelivery starts the delivery of a call; the outcome comes with end.
func (p *Path) newDelivery(id call.ID, r Request) Delivery {
	return Delivery{
		ID: uuid.Must(uuid.NewV7()), Call: id, Trial: r.trial, Service: r.Target.Service.ID, Endpoint: r.Target.Endpoint.ID,
		Origin: p.originOf(r), Method: r.Method, Path: r.Target.UpstreamPath, Source: r.Source,
		Replica: p.owner, kept: p.limitsOf(r.Target.Service).AnswerRetention,
	}
}

// end sets how the call ended. The party follows from the reason: one table says whose doing each is. The recorder may still excuse the service.
func (d Delivery) end(reason call.Reason, detail string) Delivery {
	row, known := call.RowOf(reason)
	if !known {
		panic("delivery: reason " + string(reason) + " ends no call")
	}
	d.Outcome, d.Reason, d.Party, d.Detail = row.Outcome, row.Reason, row.Party, detail
	return d
}

// follows is the state that the call has to be in for this end.
func (d Delivery) follows() call.State {
	switch {
	case d.asked():
		return call.Asked
	case d.Reason == call.SettleFailed:
		return call.Expired
	case d.Reason == call.SettleRejected:
		return call.Rejected
	}
	return call.Settled
}

// asked says whether the service was asked at all.
func (d Delivery) asked() bool { return !d.AskedAt.IsZero() }

// replica is the process that walked the call, as the database keeps it.
func (d Delivery) replica() *uuid.UUID {
	if d.Replica == (uuid.UUID{}) {
		return nil
	}
	return &d.Replica
}
