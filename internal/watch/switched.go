package watch

import (
	"fmt"
	"time"

	"market/internal/notify"
	"market/internal/switches"
)

// switched says what the operator has stopped by hand, so that it is not forgotten, and so that whoever did not do it knows of it.
func switched(on []switches.Switch) []finding {
	var found []finding
	for _, s := range on {
		switch s.Kind {
		case switches.Stop402:
			found = append(found, finding{key: key{notify.PaymentsStopped, s.Subject}, bad: true, told: notify.Outage{
				What: fmt.Sprintf("new payments on the network %s are stopped %s", s.Subject, setBy(s)),
				Effect: "callers are asked to pay on another network of the endpoint, and get 503 where there is none. Calls under way end, known payments are answered, refunds " +
					"and trial calls go on. It stays so until somebody switches it off",
				Look: "/admin/switches",
			}})
		case switches.SuspendStrikes:
			found = append(found, finding{key: key{kind: notify.StrikesSuspended}, bad: true, told: notify.Outage{
				What: "strikes are suspended " + setBy(s),
				Effect: "failed calls are measured and refunded as always, and no service is struck, rests, is delisted or is held for a review, whatever it does: a broken one goes on " +
					"failing callers. Nothing of it counts later. It stays so until somebody switches it off",
				Look: "/admin/switches",
			}})
		case switches.StopPayouts:
			found = append(found, finding{key: key{kind: notify.PayoutsStopped}, bad: true, told: notify.Outage{
				What: "payouts to providers are stopped " + setBy(s),
				Effect: "what providers earn is kept for them and grows, payouts are made and wait, and none is signed or sent. Calls and refunds go on. It stays so until somebody " +
					"switches it off",
				Look: "/admin/switches",
			}})
		}
	}
	return found
}

func setBy(s switches.Switch) string {
	return fmt.Sprintf("by %s since %s: %s", oneLine(s.By), s.Since.UTC().Format(time.DateTime)+" UTC", oneLine(s.Reason))
}
