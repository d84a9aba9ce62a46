// Package config turns the environment into one checked struct. Everything is read once, at start; everything that is wrong is reported
// together, a line each, with the variable, what was received (never a secret) and what is expected.
//
// Units: durations are Go's ("90s", "10m"), fees are basis points (1 % = 100), prices are US dollars as decimal text.
//
// A variable that is set to nothing counts as not set. A MARKET_ variable that is not in the table is an error: a misspelt or future
// setting that is silently ignored would run with a default that nobody chose.
package config
