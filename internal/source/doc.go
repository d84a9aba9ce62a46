// Package source keeps what everything outside that can refuse us has said, and what we ourselves let through to it: facilitators, nodes of a chain,
// the mail relay, the operator's webhook.
//
// Whoever wants something of a source reserves first, says afterwards what came of it, and gives back what was not used:
//
//	grant, err := meter.Reserve(ctx, source.Settlement, 2) // a *LimitError says until when it may not
//	grant.Report(ctx, source.Classify(kind, runsOut, shapes, answer))
//	grant.GiveBack(1)
//
// There are two ways to be out, and they stay apart. Either we stopped: what was used today reached the cap, which follows normal use (Cap). Or they
// stopped us: a refusal was met, and until its window has ended the source is not asked; then one request of the whole fleet tests it.
//
// Units: what a source is paid by, or counts, such as a settlement. Days are those of UTC. Times are the database's (market_now()).
//
// It does not know what waits for a source, nor who is told: that is behind Hooks.
package source
