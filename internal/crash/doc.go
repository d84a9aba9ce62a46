// Package crash names the places at which a program that dies may leave a call half done: one before and one after each move of a call's
// state, each authorization that is sent, each request to a service, each answer and each step of a refund. The moves are read from
// call.Moves, so a new move has its places as soon as it is in the table.
//
// A program built with -tags crashpoints kills itself, by SIGKILL, when it reaches the place that MARKET_CRASH_AT names; tests then see
// what a restart makes of it. In any other build Before, After and their kin are empty and compile to nothing.
package crash
