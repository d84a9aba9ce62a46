// Package app builds everything from a checked configuration, runs it and drains it. It is the only place that builds things: what
// `market serve`, the demo and the end-to-end tests start is the same.
package app
