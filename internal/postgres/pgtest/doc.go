// Package pgtest gives each test a database of its own on a real Postgres: cloned from a template that has the newest schema, dropped
// when the test ends. A database and not a schema, because notifications and advisory locks are per database.
//
// The server is the one at MARKET_TEST_DATABASE_URL, the URL of a maintenance database whose user may create databases. Without it each
// test process starts an embedded server, which ends with the process. The program in run starts one server for a whole test run.
package pgtest
