package delivery

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/catalog"
	"market/internal/notify"
)

// Those that the program itself held within the window, and nobody has put back since, of all that are for sale or would be. One that was held because it
// has died says nothing about how answers come to us, and whoever lets listings die is not to keep others from being held.
const awaySQL = `
SELECT base_url, state = 'held' AND state_actor = 'system' AND state_since > market_now() - $1::interval
                 AND NOT EXISTS (SELECT 1 FROM service_probes p WHERE p.service_id = s.id AND p.unanswered >= $2)
  FROM services s WHERE state IN ('listed', 'held')`

// ceiling says whether candidates are too many to be held beside those that are held already, and tells the operator when they come to be, and
// when they are no more. Something that stands between us and all services may answer in their place with what passes for a service's own refusal:
// then everybody would be held at once.
func (h *Holder) ceiling(ctx context.Context, candidates []heldFacts) (told []HeldNotice, tooMany bool, err error) {
	var trouble notify.Outage
	if len(candidates) > 0 {
		away, all, err := h.away(ctx, candidates)
		if err != nil {
			return nil, false, err
		}
		if tooMany = h.rule.TooMany(away, all); tooMany {
			trouble = notify.Outage{
				What: fmt.Sprintf("no service is held for review by itself: %d more would be, and with those of the last %s they are of %d of %d providers",
					len(candidates), windowText(h.rule.Window), away, all),
				Effect: "so many at once are more likely our own doing, such as a proxy or a firewall on our way out that answers in their place. All services stay " +
					"for sale meanwhile, and callers of those that fail get their money back. Put back those that are held, or suspend services by hand",
				Look: "what came back of them: GET /api/v1/services/{slug}/figures\n/admin/services",
			}
		}
	}
	var (
		ours   bool
		notice HeldNotice
	)
	if tooMany {
		notice = HeldNotice{Text: trouble.Text()}
		ours, err = h.notifications.Raise(ctx, h.db, notify.HoldingStopped, "", trouble)
	} else {
		notice = HeldNotice{Over: true, Text: "services are held for review by themselves again: those that are to be held are not too many any more"}
		ours, err = h.notifications.Settle(ctx, h.db, notify.HoldingStopped, "")
	}
	if ours {
		told = append(told, notice)
	}
	return told, tooMany, err
}

// away counts the providers of candidates and of what was held within the window, and all that have services for sale or held.
func (h *Holder) away(ctx context.Context, candidates []heldFacts) (away, all int, err error) {
	rows, err := h.db.Query(ctx, awaySQL, h.rule.Window, usualRounds.Checks)
	if err != nil {
		return 0, 0, fmt.Errorf("count what is held: %w", err)
	}
	providers := map[string]bool{} // of all, those that are away
	var (
		baseURL string
		held    bool
	)
	_, err = pgx.ForEachRow(rows, []any{&baseURL, &held}, func() error {
		provider := catalog.ProviderOf(baseURL)
		providers[provider] = providers[provider] || held
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count what is held: %w", err)
	}
	for _, c := range candidates {
		providers[catalog.ProviderOf(c.baseURL)] = true
	}
	for _, gone := range providers {
		if gone {
			away++
		}
	}
	return away, len(providers), nil
}
