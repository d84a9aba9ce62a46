// Package capacity keeps a service from getting more work than its provider declared: so many calls at once, and so many a second, over all
// replicas together. It does no I/O; who is alive is told to it.
//
// Units:
//
//	Rate    tenths of a call a second, 1/s = 10
//	places  calls at once
//
// What is declared is divided over the live replicas. Places are divided exactly: each replica has the whole part, and a rendezvous hash of service and
// replica hands out the rest, so that single places of different services lie on different replicas. A replica whose share is zero takes
// no call of that service. A rate is divided into equal parts, and each replica may be a second ahead of its part, or one call where that is
// more: in any t seconds, n replicas let in at most rate × t + max(rate, n) calls. What was let in goes to the service at an even pace, and
// no more is let in than can without anybody waiting too long.
//
// Shares do not overlap while replicas come and go: see fleet. What a replica let in before its share became smaller goes on to its end.
package capacity
