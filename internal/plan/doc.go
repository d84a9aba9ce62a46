// Package plan holds what an account may do here, as values: the limits of each plan, in order, and how a limit is shown. It does no I/O.
//
// Whoever enforces a limit reads it here, and the page of prices and the API are made of the same Fields, so that what is promised and what is held
// are one thing. A listing without an owner is the operator's own: it has no plan, see Terms.
//
// Units: counts as they are, durations in whole seconds where they are written as numbers, fees in basis points (1 % = 100).
package plan
