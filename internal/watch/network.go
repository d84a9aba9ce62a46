package watch

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"market/internal/notify"
	"market/internal/reconcile"
	"market/internal/source"
	"market/internal/switches"
)

// reasonMax is how much of a reason is told: the log has all of it.
const reasonMax = 400 // bytes

// oneLine makes a text that others wrote part of fit for a notice.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= reasonMax {
		return text
	}
	return strings.ToValidUTF8(text[:reasonMax], "") + " …"
}

// toldBySource says whether the notice of a source has told why a network is not ready. A source that only asks for a pause has none.
func toldBySource(why error) bool {
	limit, out := errors.AsType[*source.LimitError](why)
	return out && limit.Why != source.Paced
}

// networks says of each network whether payments are taken on it. Where that is because a source is out, the source's own notice has told it, and where
// the operator stopped it, that of the switch; where the books differ, theirs.
func networks(verdicts map[string]error) []finding {
	var found []finding
	for network, why := range verdicts {
		if why == nil || toldBySource(why) || errors.Is(why, switches.ErrStopped) || errors.Is(why, reconcile.ErrDifferent) {
			continue
		}
		found = append(found, finding{key: key{notify.NetworkNotReady, network}, bad: true, told: notify.Outage{
			What: fmt.Sprintf("no payment is taken on the network %s: %s", network, oneLine(why.Error())),
			Effect: "new calls that would be paid there are refused with 503 before anybody is charged, and refunds there may have to wait; none is lost. Calls under way end, and " +
				"other networks go on",
			Look: "GET /readyz on the operations listener, which says what holds at the moment\n" +
				"what it names: a node of the network or a token there (MARKET_NETWORKS), its facilitators (MARKET_FACILITATORS), the gas wallet, or the treasury",
		}})
	}
	return found
}
