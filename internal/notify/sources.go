package notify

const (
	// SourceOut is that something outside refuses us: a facilitator, a node, a channel. Its subject is the name of the source.
	SourceOut Kind = "source_out"
	// GuardReached is that we stopped using a source ourselves, because the units of today reached our guard. Its subject is the name of the source.
	GuardReached Kind = "guard_reached"
)
