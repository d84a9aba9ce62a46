// Package crashtest kills the real program at every point that package crash names and looks at what a restart makes of it: real processes,
// real Postgres, the development chain, and a service that counts how often it is asked. The chain and the service live in the test's own
// process, so they survive what dies.
package crashtest
