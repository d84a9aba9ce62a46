package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/catalog"
	"market/internal/postgres"
)

// AppealsWaiting are those of one service that nobody has answered.
type AppealsWaiting struct {
	Service    uuid.UUID
	Slug, Name string
	State      catalog.State
	N          int
	Oldest     time.Time
}

const waitingSQL = `
SELECT s.id, s.slug, s.name, s.state, count(*), min(a.at)
  FROM appeals a JOIN services s ON s.id = a.service_id
 WHERE a.answered_by IS NULL
 GROUP BY s.id
 ORDER BY min(a.at), s.id
 LIMIT $1`

// ServicesWaitingMax bounds the list of services whose appeals wait.
const ServicesWaitingMax = 1000

// WhoWaits returns the services of which an appeal is not answered, that which waits longest first.
func WhoWaits(ctx context.Context, db postgres.DB) ([]AppealsWaiting, error) {
	rows, err := db.Query(ctx, waitingSQL, ServicesWaitingMax)
	if err != nil {
		return nil, fmt.Errorf("list appeals that wait: %w", err)
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowToStructByPos[AppealsWaiting])
	if err != nil {
		return nil, fmt.Errorf("list appeals that wait: %w", err)
	}
	return waiting, nil
}
