package devnet

// idleRest is how many seconds an idle chain that is ahead of wall time lets pass for each block: over 1, so that the lead shrinks.
const idleRest = 2

// A pace is where the chain's clock stands. All times are Unix seconds.
type pace struct {
	wall    uint64 // now
	head    uint64 // the time of the newest block
	mined   uint64 // wall time when that block was mined
	waiting bool   // something asks for a block: a transaction in the pool, or a caller of Mine
}

// mayMine says whether a block may be mined now. The block's time is wall where the head is behind it, and head + 1 otherwise; it is
// never more than burst ahead of wall.
func (p pace) mayMine(burst uint64) bool {
	if p.head < p.wall {
		return true
	}
	if p.head+1 > p.wall+burst {
		return false
	}
	return p.waiting || p.wall >= p.mined+idleRest
}
