// Package replaytest plays again what went wrong at others, and led to this program: each incident against the server as it is put together in
// production, with Postgres, a development chain and a facilitator of somebody else, and with no other change than that the clock of the database is
// moved on. `make replay` prints what came of each; docs/replay.md says what is wanted.
package replaytest
