// Package jobs holds what all kinds of our jobs have in common: a periodic one hands out what is due, and each thing has one live job that the queue does
// not try again. When a thing is tried again stands on its row, in market time; the queue only runs work now, because its clock is real time.
package jobs

import (
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// dueEvery is how soon something is worked on that has come to be due.
const dueEvery = time.Second

// EverySecond is the periodic job that hands out what is due; of the replicas one does at a time.
func EverySecond(args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(dueEvery), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: dueEvery}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// EveryMinute is a periodic job that finds work which nothing waits for; of the replicas one does at a time.
func EveryMinute(args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(time.Minute), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: time.Minute}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// OneLive keeps one live job of the same arguments, and no retry by the queue. An empty queue is the usual one.
func OneLive(queue string) river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}}
}
