package metrics

import "market/internal/source"

// The words that stand in labels. They are a contract with dashboards and alerts.
var (
	classNames = map[source.Class]string{source.Refund: "refund", source.Payout: "payout", source.Settlement: "settlement", source.Other: "other"}
	// The zero reason is none: it was granted.
	resultNames = map[source.Why]string{0: "granted", source.Guarded: "guarded", source.Exhausted: "exhausted", source.Paced: "paced", source.Denied: "denied"}
)
