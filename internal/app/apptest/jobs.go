package apptest

import "testing"

// The job queue goes by the wall clock, which no test can shift: a dead server leads it for 15 s more, and its jobs count as running for 90.
const (
	deposeSQL = `DELETE FROM river_leader`
	ageSQL    = `UPDATE river_job SET attempted_at = attempted_at - interval '90 seconds' WHERE state = 'running'`
)

// BuryJobs lets that time pass for the job queue.
func (w *World) BuryJobs(t testing.TB) {
	t.Helper()
	for _, sql := range []string{deposeSQL, ageSQL} {
		if _, err := w.DB.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
