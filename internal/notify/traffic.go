package notify

const (
	// OwnTraffic is that nearly all traffic is our own; it has no subject.
	OwnTraffic Kind = "own_traffic"
	// UnattributedTraffic is that callers come through a proxy that is not configured; it has no subject.
	UnattributedTraffic Kind = "unattributed_traffic"
)
