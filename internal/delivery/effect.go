package delivery

import (
	"fmt"
	"strings"

	"market/internal/audit"
	"market/internal/catalog"
	"market/internal/strikes"
)

// Effect says in words what a decision changed, for whoever made it.
func (d Decision) Effect() string {
	var words []string
	switch d.Action {
	case audit.Void:
		words = append(words, "The strike is void and does not count.")
		if d.Strike != nil && d.Before.Strikes[*d.Strike] == strikes.Cleared {
			words = append(words, "It had been cleared by a success.")
		}
	case audit.Uphold:
		if d.Strike == nil {
			words = append(words, "The appeals about the service are answered.")
			break
		}
		words = append(words, "The strike stays as it is.")
	case audit.Relist:
		if d.Archived > 0 {
			words = append(words, fmt.Sprintf("Archived strikes, which do not count any more: %d.", d.Archived))
		}
	case audit.Suspend, audit.Recount:
	}
	if d.Before.CooldownUntil != nil && d.After.CooldownUntil == nil {
		words = append(words, "Its cooldown ends.")
	}
	words = append(words, d.place(), fmt.Sprintf("Strikes that count now: %d.", d.After.Counting))
	return strings.Join(words, " ")
}

// place says where the service is now.
func (d Decision) place() string {
	switch {
	case d.Before.State == d.After.State && d.Action == audit.Void && d.After.State == catalog.Delisted:
		return "The service stays delisted: without this strike its others delist it."
	case d.Before.State == d.After.State && d.Action == audit.Void && d.After.State == catalog.Held:
		return "The service stays held for a review."
	case d.Before.State == d.After.State:
		return fmt.Sprintf("The service stays %s.", d.After.State)
	case d.After.State.Sells():
		return fmt.Sprintf("The service was %s and is back on the shelf.", d.Before.State)
	}
	return fmt.Sprintf("The service was %s and is %s now.", d.Before.State, d.After.State)
}
