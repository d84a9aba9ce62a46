package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/strikes"
)

// An OpenStrike is one strike that counts, with the calls that prove it.
type OpenStrike struct {
	ID             uuid.UUID
	Service        string // slug
	OpenedAt       time.Time
	LastEvidenceAt time.Time
	Deliveries     int
	Calls          []call.ID // in the order of their recording, the first 100
}

const openStrikesSQL = `
SELECT st.id, s.slug, st.opened_at, st.last_evidence_at, count(*),
       (array_agg(d.call_id ORDER BY d.recorded_at, d.id))[1:100]
  FROM strikes st
  JOIN services s ON s.id = st.service_id
  JOIN strike_deliveries sd ON sd.strike_id = st.id
  JOIN deliveries d ON d.id = sd.delivery_id
 WHERE st.state = 'open' AND st.opened_at > market_now() - $1::interval
 GROUP BY st.id, s.slug
 ORDER BY s.slug, st.opened_at, st.id
 LIMIT $2`

// openStrikesMax bounds the list.
const openStrikesMax = 1000

// OpenStrikes returns the strikes that count at the next failure, by service, with their evidence.
func (r *Recorder) OpenStrikes(ctx context.Context, db postgres.DB) ([]OpenStrike, error) {
	rows, err := db.Query(ctx, openStrikesSQL, r.strikes.Policy().Window, openStrikesMax)
	if err != nil {
		return nil, fmt.Errorf("list open strikes: %w", err)
	}
	open, err := pgx.CollectRows(rows, pgx.RowToStructByPos[OpenStrike])
	if err != nil {
		return nil, fmt.Errorf("list open strikes: %w", err)
	}
	return open, nil
}

// Policy is how strikes count.
func (r *Recorder) Policy() strikes.Policy { return r.strikes.Policy() }
