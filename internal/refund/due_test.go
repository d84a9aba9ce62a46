package refund

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"market/internal/postgres/pgtest"
)

// Jobs are not the truth: what is owed is handed out by its row, whatever became of its job.
func TestDueWorker_TakesUpAnOwedRefundWhoseJobIsGone(t *testing.T) {
	t.Parallel()
	for name, became := range map[string]string{
		"its job was deleted":        `DELETE FROM river_job`,
		"its job was discarded":      `UPDATE river_job SET state = 'discarded', finalized_at = now()`,
		"its job was cancelled":      `UPDATE river_job SET state = 'cancelled', finalized_at = now()`,
		"its job ended without it":   `UPDATE river_job SET state = 'completed', finalized_at = now()`,
		"its job still waits":        `SELECT`,
		"its job runs at the moment": `UPDATE river_job SET state = 'running', attempted_at = now()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			queue, err := river.NewClient(riverpgxv5.New(s.db), &river.Config{})
			if err != nil {
				t.Fatal(err)
			}
			o := Derive(s.payment(t))
			err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
				if err := (Store{}).Owe(t.Context(), tx, o); err != nil {
					return err
				}
				_, err := queue.InsertTx(t.Context(), tx, Args{Call: o.Payment.Call}, nil)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.db.Exec(t.Context(), became); err != nil {
				t.Fatal(err)
			}
			w := NewDueWorker(s.db)
			pgtest.Shift(t, s.db, lease)
			for range 2 { // the second finds it leased
				if err := w.handOut(t.Context(), queue); err != nil {
					t.Fatal(err)
				}
			}
			const liveSQL = `
SELECT count(*) FROM river_job WHERE kind = 'refund' AND args ->> 'call' = $1 AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')`
			var live int
			if err := s.db.QueryRow(t.Context(), liveSQL, o.Payment.Call.String()).Scan(&live); err != nil || live != 1 {
				t.Errorf("%d live jobs, %v; want one", live, err)
			}
		})
	}
}
