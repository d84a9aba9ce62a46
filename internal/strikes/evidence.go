package strikes

import (
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
)

// A Failure is a failed delivery of a service, with what is kept of it as evidence.
type Failure struct {
	Service, Delivery uuid.UUID
	AskedAt           time.Time // as the database wrote it
	Error             string    // the kind of error in a few words of ours
	Said              call.Said
	Others            Others
}

// Others is how the other services fared in the minute before a failure: where many of them failed too, the trouble may have been ours.
type Others struct {
	Asked, Failed int // services that answered calls from outside, and those of them that failed one
}

// Evidence is one delivery that proves a strike.
type Evidence struct {
	Strike     uuid.UUID
	Call       call.ID
	Trial      bool
	AskedAt    time.Time
	RecordedAt time.Time
	Replica    uuid.UUID // that walked the call; zero: not known
	Source     netip.Addr
	Network    netip.Prefix // of Source: a /24, or a /48 of IPv6
	Origin     call.Origin
	Payer      common.Address // zero for a trial
	Method     string
	Path       string
	Status     int // of the upstream; zero: none came
	Latency    time.Duration
	Reason     call.Reason
	Detail     string
	Error      string
	Said       call.Said
	Others     *Others // nil: not known
	Excused    bool    // by an outage of ours: it counts for nothing
}

// A Strike is one incident, with the evidence for it.
type Strike struct {
	ID             uuid.UUID
	Service        uuid.UUID
	State          string // open, cleared, or what a review made of it
	Counts         bool   // at the next failure: it is open and inside the window
	OpenedAt       time.Time
	FoldsUntil     time.Time
	LastEvidenceAt time.Time
	ClearedAt      time.Time  // zero: it was not cleared
	ClearedBy      call.ID    // zero: it was not cleared
	Spread         Spread     // of the evidence that counts
	Excused        int        // deliveries besides, that an outage of ours excuses
	Calls          []call.ID  // in the order of their recording, the first 100
	Evidence       []Evidence // in the order of their recording: the oldest and the newest, where there is more than is shown
}

// A Delisting is one time that strikes took a service off the shelf: what they were counted by, and what was found.
type Delisting struct {
	ID       uuid.UUID
	At       time.Time
	Verdict  Verdict // Delists or Holds
	From     string  // the state that the service was in
	Limit    int
	Window   time.Duration
	Needed   int // networks
	Open     int
	Sources  int
	Deciding uuid.UUID // the strike that reached the limit
}
