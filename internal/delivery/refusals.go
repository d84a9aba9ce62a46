package delivery

import (
	"context"
	"fmt"

	"market/internal/call"
)

// rowsPerMinute is how many refusals of one address prefix get a row of their own in a minute; the rest are only counted.
const rowsPerMinute = 60

// One statement counts a refusal and gives it a row where its reason is worth one and its prefix has rows left this minute. Racing
// refusals may overshoot the limit by their number; it protects the table's size, not an invariant.
const refuseSQL = `
WITH so_far AS (
	SELECT coalesce(sum(count), 0) AS n FROM refusal_counts WHERE minute = date_trunc('minute', market_now()) AND prefix = $12
), counted AS (
	INSERT INTO refusal_counts (minute, endpoint_id, reason, prefix, count)
	VALUES (date_trunc('minute', market_now()), $5, $7, $12, 1)
	ON CONFLICT (minute, endpoint_id, reason, prefix) DO UPDATE SET count = refusal_counts.count + 1
), delivered AS (
	INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, method, path, source, payer, detail, replica)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, false, $10, $11, $13, $14, $15, $18
	  FROM so_far WHERE $16 AND n < $17
	RETURNING id
)
SELECT count(*) = 1 FROM delivered`

// Refuse measures a refusal that touched no money. It reports whether the refusal has a row, under which its call can be looked up.
func (r *Recorder) Refuse(ctx context.Context, d Delivery) (kept bool, err error) {
	var payer []byte
	if !d.Trial && worthRow(d.Reason) {
		payer = d.Payer[:]
	}
	err = r.db.QueryRow(ctx, refuseSQL, d.ID, d.Call, d.Trial, d.Service, d.Endpoint, d.Outcome, d.Reason, d.Party, d.Origin,
		d.Method, d.Path, call.Network(d.Source), d.Source, payer, d.Detail, worthRow(d.Reason), rowsPerMinute, d.replica()).Scan(&kept)
	if err != nil {
		return false, fmt.Errorf("count refusal %s of call %s: %w", d.Reason, d.Call, err)
	}
	return kept, nil
}

// worthRow says whether a refusal tells something about the input or the service, rather than about a payment header. In a cooldown and
// after a withdrawal only trials come here: a paid call has a settled payment by then, and a delivery whatever happens.
func worthRow(r call.Reason) bool {
	switch r {
	case call.InputEmpty, call.InputInvalid, call.InputTooLarge, call.NotLive, call.InCooldown, call.Withdrawn:
		return true
	}
	return false
}
