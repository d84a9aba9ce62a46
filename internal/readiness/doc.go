// Package readiness answers whether we may take money on a network: can we settle there, and can we give it back. What the accounts behind us permit
// (a capability) is looked at outside the requests and kept in memory; a request reads it. How long a result may be used is derived from what the operator
// is willing to lose (b), and from how fast all processes together send payments to settlement: see policy.go.
package readiness
