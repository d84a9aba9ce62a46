package delivery

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/readiness"
	sources "market/internal/source"
)

// A caller is told what kind of thing is out and until when; which one is the operator's business.
func TestPath_Closed_SaysWhatKindIsOutAndUntilWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &Path{Config: Config{Now: func() time.Time { return now }}}
	out := func(name string, why sources.Why) error {
		return fmt.Errorf("not ready: %w", &sources.LimitError{Source: name, Why: why, Wait: time.Hour})
	}
	for name, tt := range map[string]struct {
		cause  error
		wait   time.Duration
		detail string
	}{
		"a facilitator has no credit": {out("facilitator/hosted", sources.Exhausted), time.Hour, "the facilitator that settles payments has reached its limit; nothing was charged"},
		"our own guard":               {out("facilitator/hosted", sources.Guarded), time.Hour, "the facilitator that settles payments has reached its limit; nothing was charged"},
		"a facilitator is busy":       {out("facilitator/hosted", sources.Paced), time.Hour, "the facilitator that settles payments asks for a pause; nothing was charged"},
		"our credential":              {out("facilitator/hosted", sources.Denied), time.Hour, "the facilitator that settles payments does not take our requests; nothing was charged"},
		"a node":                      {out("rpc/eip155:1/hosted", sources.Exhausted), time.Hour, "the chain node that payments are checked with has reached its limit; nothing was charged"},
		"something else":              {errors.New("hosted is gone"), readyRetry, "payments cannot be settled or refunded at the moment; nothing was charged"},
		"a proof that is too old":     {closedBy(readiness.CauseTooOld, 0), readyRetry, "payments cannot be settled or refunded at the moment; nothing was charged"},
		"a price above what is settled at once": {closedBy(readiness.CauseTooDear, 0), awayRetry,
			"one call costs more than this market settles at once; its operator has to raise that limit; nothing was charged"},
		"a second's worth is used up": {closedBy(readiness.CauseSpent, 1500*time.Millisecond), 1500 * time.Millisecond, "as much is being settled as this market settles in a second; nothing was charged"},
		"an admin stopped it":         {closedBy(readiness.CauseStopped, 0), brokenRetry, "the operator has stopped new payments here for now; nothing was charged"},
		"a facilitator, as readiness says it": {&readiness.Closed{Cause: readiness.CauseLimited, Why: out("facilitator/hosted", sources.Exhausted)}, time.Hour,
			"the facilitator that settles payments has reached its limit; nothing was charged"},
	} {
		no := p.closed(tt.cause)
		if no.Reason != call.NotReady || no.Detail != tt.detail || !no.Until.Equal(now.Add(tt.wait)) || !errors.Is(no, tt.cause) || strings.Contains(no.Detail, "hosted") {
			t.Errorf("%s: %q until %s, want %q in %s", name, no.Detail, no.Until, tt.detail, tt.wait)
		}
	}
}

func closedBy(cause readiness.Cause, wait time.Duration) error {
	return &readiness.Closed{Cause: cause, Wait: wait, Why: errors.New("hosted is not well")}
}

// Of several networks the one counts that may be paid on first; one that is not ready for another reason may be at any moment.
func TestSoonest_TheReasonThatEndsFirst(t *testing.T) {
	t.Parallel()
	at := func(hours int) error {
		return &sources.LimitError{Source: "facilitator/hosted", Until: time.Date(2026, 1, 2, hours, 0, 0, 0, time.UTC)}
	}
	three, four, other, dear := at(3), at(4), errors.New("the node is stuck"), closedBy(readiness.CauseTooDear, 0)
	for name, tt := range map[string]struct {
		causes []error
		want   error
	}{
		"none":                {nil, nil},
		"the earlier limit":   {[]error{four, three, four}, three},
		"no limit goes first": {[]error{three, other, four}, other},
		"a price last of all": {[]error{dear, four, dear}, four},
		"a price alone":       {[]error{dear}, dear},
	} {
		if got := soonest(tt.causes); got != tt.want { //nolint:errorlint // the very one
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
