package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"market/internal/notify"
	"market/internal/refund"
)

const (
	// lateAfter is how long a refund may be owed beyond what the depth of its payment and its own need.
	lateAfter = 10 * time.Minute
	// blockTime is the slowest of the chains on which these tokens are.
	blockTime = 12 * time.Second
	// lateWithoutDepth is the limit of a network that is not configured any more: nobody knows its depth.
	lateWithoutDepth = 20 * time.Minute
)

// lateLimit is how long a refund may be owed where a transfer is final at a depth: its payment has to get there first, and then it itself.
func lateLimit(confirmations int) time.Duration {
	return lateAfter + 2*time.Duration(confirmations)*blockTime
}

// lateRefunds says of each network whether refunds are late there, where some were or were not when it was looked at last: it is over when none is owed
// for even half of the limit.
func lateRefunds(late []refund.Late, known map[string]Network, was map[key]finding) []finding {
	of := map[string][]refund.Late{}
	for _, l := range late {
		of[l.Network] = append(of[l.Network], l)
	}
	var found []finding
	for network, of := range of {
		f := finding{key: key{notify.RefundsLate, network}}
		if f.told, f.bad = lateTold(network, of, known[network]); !f.bad {
			f.bad, f.told = was[f.key].bad, was[f.key].told
		}
		found = append(found, f)
	}
	return found
}

// lateTold says it of one network; false where none is over the limit.
func lateTold(network string, late []refund.Late, n Network) (told notify.Outage, any bool) {
	var (
		count, parked int
		oldest        time.Duration
		sums, why     []string
	)
	for _, l := range late {
		if l.Count == 0 {
			continue
		}
		count, parked, oldest = count+l.Count, parked+l.Parked, max(oldest, l.Oldest)
		sums = append(sums, amount(n, l.Asset, l.Sum))
		if l.Why != "" && !slices.Contains(why, l.Why) {
			why = append(why, oneLine(l.Why))
		}
	}
	if count == 0 {
		return notify.Outage{}, false
	}
	if len(why) == 0 {
		why = []string{"nobody has worked on them yet"}
	}
	what := fmt.Sprintf("%s on %s, %s in all, %s owed for longer than refunds take, the oldest for %s: %s",
		plural(count, "refund"), network, strings.Join(sums, " and "), isAre(count), span(oldest), strings.Join(why, "; "))
	effect := "their callers have paid for nothing and wait for their money. It stays owed and is tried again by itself; calls go on"
	if parked > 0 {
		effect += fmt.Sprintf(". %d of them %s parked, which does not pass by itself", parked, isAre(parked))
	}
	return notify.Outage{What: what, Effect: effect,
		Look: "the lines \"job\" of the kind \"refund\" in the log, which say what goes wrong\n" +
			"what refunds wait for most often: a treasury without money, a key that this program does not hold (MARKET_TREASURY_RETIRED_KEYSTORES), and a recipient that the token has blocked",
	}, true
}

// nearTold is what a process says of a trouble that was told before it began to run, as long as refunds are near the limit.
func nearTold(network string) notify.Outage {
	return notify.Outage{What: "refunds on " + network + " are owed for nearly as long as they may be, after some were owed for longer",
		Effect: "their callers have paid for nothing and wait for their money. It stays owed and is tried again by itself; calls go on",
		Look:   "the lines \"job\" of the kind \"refund\" in the log, which say what goes wrong"}
}

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
