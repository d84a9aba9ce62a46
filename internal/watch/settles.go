package watch

import (
	"fmt"
	"time"

	"market/internal/delivery"
	"market/internal/notify"
)

// Whoever calls us in good faith pays with what is there, and what is not there is refused before the claim. So a few payments of more than one payer
// that fail through no fault of theirs are enough; one payer alone could make them fail.
const (
	failedMin = 5
	payersMin = 2
)

// nothingSettles says that payments are tried, and none has settled in all of the window. A night without calls tries none.
func nothingSettles(t delivery.Tries) bool {
	return t.Settled == 0 && t.Failed >= failedMin && len(t.Payers) >= payersMin
}

var nothingSettlesKey = key{kind: notify.NothingSettles}

// settling returns what is to be told of all tries together. It is over with the next payment that settles, and not before: that nobody tries any more
// says nothing.
func settling(t delivery.Tries, open bool) (raise *notify.Outage, settle bool) {
	switch {
	case open:
		return nil, t.Settled > 0
	case nothingSettles(t):
		return &notify.Outage{
			What: fmt.Sprintf("no payment has settled for %s: %d were tried and failed through no fault of their payers, and %d requests were asked to pay",
				span(delivery.TriesWindow), t.Failed, t.Challenges),
			Effect: "callers get 503. A payment that was never shown to anybody is not charged; one that was stays open until the chain decides, and is refunded where its " +
				"call was not served. Trial calls go on. This is over with the next payment that settles",
			Look: "the lines \"settle call\" in the log, which say why each of them failed\nGET /readyz on the operations listener, which says how every network stands\n" +
				"the facilitators, the node and the gas wallet of the networks that callers pay on",
		}, false
	}
	return nil, false
}

// span is a duration for people.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}
