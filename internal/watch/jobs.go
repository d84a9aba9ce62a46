package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"market/internal/notify"
	"market/internal/postgres"
)

const (
	// jobPatience is how long no job of a kind may end well after one was given up, and how long a periodic one may not run.
	jobPatience = 5 * time.Minute
	// jobWindow is how far back jobs that were given up are looked for. It is less than how long jobs that ended well are kept: else one that ended well
	// since would be missed.
	jobWindow = 50 * time.Minute
)

// A jobFact is how jobs of one kind went of late, in the queue's own time, which is real. Negative durations are what there was none of.
type jobFact struct {
	kind     string
	periodic bool
	failing  time.Duration // since the first that was given up after the last that ended well
	done     time.Duration // since the last that ended well
	given    time.Duration // since the last that was given up
	why      string
}

// stuck says whether a kind of job does not get its work done, by a process that has looked for so long. It has not seen a periodic one for no longer.
func (j jobFact) stuck(seen time.Duration) bool {
	if j.periodic {
		since := seen
		if j.done >= 0 {
			since = min(seen, j.done)
		}
		return since >= jobPatience
	}
	return j.failing >= jobPatience
}

// over says whether a kind of job that was stuck does its work again: one has ended well after all that were given up, or nothing is known of them any
// more.
func (j jobFact) over() bool {
	if j.periodic {
		return j.done >= 0 && j.done < jobPatience
	}
	return j.given < 0 || j.done >= 0 && j.done < j.given
}

func (j jobFact) told() notify.Outage {
	what := fmt.Sprintf("jobs of the kind %q were given up, and for %s none has ended well", j.kind, span(max(0, j.failing)))
	if j.periodic {
		what = fmt.Sprintf("the job %q, which runs all the time, has not run for %s or more", j.kind, span(jobPatience))
	}
	if j.why != "" {
		what += ". The last error: " + oneLine(j.why)
	}
	effect := "what these jobs do is not done. Calls go on"
	if does, known := jobEffects[j.kind]; known {
		effect = does
	}
	return notify.Outage{What: what, Effect: effect, Look: "the lines \"job\" in the log, which have each error\nthe table river_job, where such jobs are in the state discarded\n" +
		"the processes: if no job runs at all, restart them one after the other"}
}

// jobEffects says what a kind of job does.
var jobEffects = map[string]string{
	"notices_due":  "notices like this one are not sent; they stand on the page /admin/notices. Calls go on",
	"letters_due":  "providers are not told of strikes and of their services; what is to be told waits. Calls go on",
	"payouts_due":  "payouts that are made are not sent or followed until it runs; what providers have earned stays owed. Calls and refunds go on",
	"payouts_make": "providers whose balance has passed their threshold are not paid by themselves; what they ask for is. Calls and refunds go on",
	"refunds_due":  "refunds that did not get through at once are not tried again, and stay owed until it runs. New ones are tried once, and calls go on",
}

// Kinds are those of which something was given up of late, and those that are asked for: the periodic ones, and those with an open notice.
const jobsSQL = `
WITH kinds AS (
	SELECT DISTINCT kind FROM (
		SELECT kind FROM river_job WHERE state = 'discarded' AND finalized_at > now() - $2::interval ORDER BY finalized_at DESC LIMIT 1000) d
	UNION SELECT unnest($1::text[])
)
SELECT k.kind, now() - failing.finalized_at, now() - done.finalized_at, now() - given.finalized_at, coalesce(given.why, '')
  FROM kinds k
  LEFT JOIN LATERAL (
	SELECT finalized_at FROM river_job WHERE kind = k.kind AND state = 'completed' AND finalized_at IS NOT NULL ORDER BY finalized_at DESC LIMIT 1
  ) done ON true
  LEFT JOIN LATERAL (
	SELECT finalized_at, left(errors[array_upper(errors, 1)] ->> 'error', 1000) AS why
	  FROM river_job WHERE kind = k.kind AND state = 'discarded' AND finalized_at IS NOT NULL ORDER BY finalized_at DESC LIMIT 1
  ) given ON true
  LEFT JOIN LATERAL (
	SELECT finalized_at FROM river_job
	 WHERE kind = k.kind AND state = 'discarded' AND finalized_at > greatest(now() - $2::interval, coalesce(done.finalized_at, '-infinity'))
	 ORDER BY finalized_at LIMIT 1
  ) failing ON true
 ORDER BY k.kind LIMIT 100`

// jobFacts reads how the kinds of jobs went.
func jobFacts(ctx context.Context, db postgres.DB, periodic, open []string) ([]jobFact, error) {
	rows, err := db.Query(ctx, jobsSQL, append(append([]string{}, periodic...), open...), jobWindow)
	if err != nil {
		return nil, fmt.Errorf("read how jobs went: %w", err)
	}
	runsAlways := map[string]bool{}
	for _, kind := range periodic {
		runsAlways[kind] = true
	}
	facts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (j jobFact, err error) {
		var failing, done, given *time.Duration
		err = row.Scan(&j.kind, &failing, &done, &given, &j.why)
		j.periodic, j.failing, j.done, j.given = runsAlways[j.kind], orNever(failing), orNever(done), orNever(given)
		return j, err
	})
	if err != nil {
		return nil, fmt.Errorf("read how jobs went: %w", err)
	}
	return facts, nil
}

func orNever(d *time.Duration) time.Duration {
	if d == nil {
		return -1
	}
	return max(0, *d)
}
