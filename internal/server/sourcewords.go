package server

import (
	"fmt"
	"slices"
	"time"

	"market/internal/source"
)

// A sourceState is the gravest of what stands against asking a source now.
type sourceState string

const (
	sourceOK        sourceState = "ok"
	sourceGuarded   sourceState = "guarded"
	sourceExhausted sourceState = "exhausted"
	sourceDenied    sourceState = "denied"
	sourcePaced     sourceState = "paced"
)

// sourceStates are all of them, the gravest first.
var sourceStates = []sourceState{sourceDenied, sourceExhausted, sourceGuarded, sourcePaced, sourceOK}

// out says that work waits for a source or goes elsewhere; a pause of seconds is none.
func (s sourceState) out() bool {
	return s == sourceDenied || s == sourceExhausted || s == sourceGuarded
}

// sourceBadges are the states for people.
var sourceBadges = map[sourceState]badge{
	sourceOK: {"works", "good"}, sourceGuarded: {"we stopped", "bad"}, sourceExhausted: {"they stopped us", "bad"}, sourceDenied: {"our credential is refused", "bad"},
	sourcePaced: {"asked us to wait", "wait"},
}

// A sourceReason is one thing that stands against asking a source now.
type sourceReason struct {
	Why   sourceState `json:"why"`
	Since *string     `json:"since"`
	Until *string     `json:"until"` // null: the next request tests it
	Words string      `json:"words"`
}

// reasonsOf says everything that stands against asking a source, the gravest first. What they did and what we did are different facts, and both may hold.
func reasonsOf(st source.Standing) []sourceReason {
	reasons := []sourceReason{}
	if !st.ExhaustedAt.IsZero() {
		reasons = append(reasons, theyStopped(st))
	}
	if midnight := st.Day.AddDate(0, 0, 1); guarded(st) {
		next := "More goes out from %s."
		if st.Source.Kind.Adjustable() {
			next = "More is let through from %s, or raise guard.floor."
		}
		stopped := "We stopped at " + count(int(st.Used))
		if st.Source.Kind == source.KindFacilitator && st.Used < st.Cap {
			stopped = fmt.Sprintf("At %s of %s we refuse new payments, those for services of the smallest plan first", count(int(st.Used)), count(int(st.Cap)))
		}
		reasons = append(reasons, sourceReason{Why: sourceGuarded, Since: timeOrNull(st.GuardedAt), Until: timeOrNull(midnight),
			Words: fmt.Sprintf("%s: %s. "+next, stopped, normal(st), humanTime(midnight))})
	}
	if st.NextRequestAt.After(st.At) {
		reasons = append(reasons, sourceReason{Why: sourcePaced, Until: timeOrNull(st.NextRequestAt),
			Words: fmt.Sprintf("They asked us to wait until %s. That is no outage.", humanTime(st.NextRequestAt))})
	}
	return reasons
}

// stateOf is the gravest of some reasons.
func stateOf(reasons []sourceReason) sourceState {
	for _, s := range sourceStates {
		if slices.ContainsFunc(reasons, func(r sourceReason) bool { return r.Why == s }) {
			return s
		}
	}
	return sourceOK
}

func guarded(st source.Standing) bool {
	return !st.GuardedAt.IsZero() || st.Cap > 0 && st.Used >= st.Cap
}

func theyStopped(st source.Standing) sourceReason {
	since := st.OutSince
	if since.IsZero() {
		since = st.ExhaustedAt
	}
	r := sourceReason{Why: sourceExhausted, Since: timeOrNull(since)}
	next := "The next request tests it."
	if st.RetryAt.After(st.At) {
		r.Until = timeOrNull(st.RetryAt)
		next = fmt.Sprintf("We ask again at %s.", humanTime(st.RetryAt))
	}
	by := ""
	if st.Said != "" {
		by = ", by " + brief(st.Said, 80)
	}
	if st.Why == source.Denied {
		r.Why = sourceDenied
		r.Words = fmt.Sprintf("They have not accepted our credential since %s%s. %s Look at the credential that is configured.", humanTime(since), by, next)
		return r
	}
	r.Words = fmt.Sprintf("They stopped us at %s: %s%s. %s", humanTime(since), ranOut[st.Source.RunsOut], by, next)
	return r
}

// ranOut says what is no longer there, by how a source runs out.
var ranOut = map[source.RunsOut]string{source.Rate: "they take no more requests for now", source.Daily: "the quota of the day is used up", source.Prepaid: "out of credit"}

// normal says what the cap of a source follows.
func normal(st source.Standing) string {
	if st.Busiest == 0 {
		return "there is no day yet that says what is normal"
	}
	return fmt.Sprintf("normal is %s a day", count(int(st.Busiest)))
}

// timeOrNull is a time of the API that may be none.
func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := timeJSON(t)
	return &text
}
