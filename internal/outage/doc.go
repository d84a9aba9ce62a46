// Package outage tells our own outages from failures of services. While one holds, for the fleet or for one replica, no failure is a service's
// doing: no strike, no cooldown. What led up to it is excused as well.
//
// What decides is Policy, from Facts to a State, without a clock. The Store counts the facts, and keeps one row an outage.
//
// Times are the database's (market_now()).
package outage
