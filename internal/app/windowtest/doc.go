// Package windowtest measures the stale window: what a fleet still sends to settlement after whoever settles has fallen silent. Real processes with one
// database, the development chain, and a facilitator of somebody else that answers, hangs, fails or refuses as the test tells it, and writes down every
// dollar that it is shown. Facilitator, chain, service and callers live in the test's own process.
package windowtest
