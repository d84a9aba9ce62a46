package source

import "context"

// A Grant is units that were set aside, and the right to ask their source.
type Grant struct{ m *Meter }

// Tests says that this request is the one of its window that tests a source which is out.
func (g *Grant) Tests() bool { return false }

// Report says what came of the request. It never fails its caller: what goes wrong with it is told to Hooks.OnError.
func (g *Grant) Report(ctx context.Context, v Verdict) {}

// GiveBack returns units that were not used. They are collected, and written once a second; a crash loses them, so that the day counts a little more than
// was used.
func (g *Grant) GiveBack(n int64) {}
