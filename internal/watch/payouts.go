package watch

import (
	"context"
	"fmt"
	"slices"

	"market/internal/notify"
	"market/internal/payout"
)

// lookAtPayouts finds out whether payouts are parked.
func (w *Watch) lookAtPayouts(ctx context.Context) error {
	parked, err := payout.Store{}.Parked(ctx, w.DB)
	if err != nil {
		return err
	}
	open, err := w.open(ctx, notify.PayoutsParked)
	if err != nil {
		return err
	}
	var found []finding
	for _, p := range parked {
		found = append(found, parkedFinding(p))
	}
	for k := range open {
		if !slices.ContainsFunc(found, func(f finding) bool { return f.key == k }) {
			found = append(found, finding{key: k})
		}
	}
	w.keep(found, func(k key) bool { return k.kind == notify.PayoutsParked })
	return nil
}

func parkedFinding(p payout.Parked) finding {
	why := "nobody has worked on them yet"
	if p.Why != "" {
		why = oneLine(p.Why)
	}
	return finding{key: key{notify.PayoutsParked, p.Network}, bad: true, told: notify.Outage{
		What:   fmt.Sprintf("%s on %s %s parked or %s not get through, the oldest made %s ago: %s", plural(p.Count, "payout"), p.Network, isAre(p.Count), doDoes(p.Count), span(p.Oldest), why),
		Effect: "their providers wait for what they have earned. It stays owed and is tried again by itself, every ten minutes where it is parked; other payouts, refunds and calls go on",
		Look: "GET /api/v1/admin/payouts?state=parked, which says why\n" +
			"what payouts wait for most often: a recipient that the token has blocked, who has to give another address; a treasury without money; a key that this program does not hold",
	}}
}

func doDoes(n int) string {
	if n == 1 {
		return "does"
	}
	return "do"
}
