// Package metrics tells Prometheus how this process does: what became of its requests to sources, of the notices that it sent, and how much work waits.
//
// Counters are of this process, are counted where it happens, and begin at 0 with it: add those of all processes. Gauges are read from the database, so
// each process shows the same: take the largest. A scrape reads them with one bounded reading, at most once in five seconds; where the database does not
// answer, they are left out, and the rest is shown.
//
// What stands in a label is a word of ours or a name from configuration, of which there are few. No name holds a credential, a path or an address of a
// caller.
package metrics
