// Package watch looks for what stops without anybody running into it: a network on which nothing is sold, a treasury that cannot pay what it owes, a
// gas wallet that is nearly empty, refunds that are late, payments of which none settles, jobs that were given up, work beside the calls that hangs, a
// clock that is wrong. Each is told once, and once more when it is over.
//
// Every process looks, and none of them needs a lock. What one process alone can see stands in its report (replica.Store), which all of them read: a
// trouble is raised when one of those that run has seen it for long enough, and over when none of them has seen it for a while, so processes with
// different views do not contradict each other. What the database says is the same for all. Raising and settling is idempotent, and says who was first.
//
// Durations that a process measures are its own, by its monotonic clock; no instant is compared with another process's.
package watch
