package source

// Out says from memory that the source stops us, whether or not its window has ended: what has not worked since is out.
func (m *Meter) Out() bool { return false }
