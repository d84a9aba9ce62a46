package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// A Key names a limit in the API, in a problem document and in the operator's file.
type Key string

// The keys of the limits.
const (
	KeyListings         Key = "listings"
	KeyEndpoints        Key = "endpoints_per_listing"
	KeyTrialCallsPerDay Key = "trial_calls_per_day"
	KeyProbeEvery       Key = "probe_every_seconds"
	KeyFeeBPS           Key = "fee_bps"
	KeyPriority         Key = "priority"
	KeyAnswerRetention  Key = "answer_retention_seconds"
	KeyPayoutThreshold  Key = "payout_threshold_cents"
)

// probeEveryMin is a few ticks of the rounds, which are gone once a minute: what is shorter could not be kept to half a tick.
const probeEveryMin = 3 * time.Minute

// probeEveryMax is such that a listing which is dead for a week is found to be: a hundred checks without an answer hold it.
const probeEveryMax = time.Hour

// A Field is one limit: how it is called and explained, what it may be, and where it is. It is the only source of what is shown of a limit.
type Field struct {
	Key         Key
	Title       string
	Explanation string
	// Counted says that a provider has so many of it, which is compared with the limit when one more is made.
	Counted bool
	Least   int64
	Most    int64

	has   string // "%s listings": in a sentence of what a plan has
	fewer bool   // the smaller value is the better one
	show  func(int64) string
	get   func(Limits) int64
	set   func(*Limits, int64)
}

// Fields returns every limit, in the order in which they are shown.
func Fields() []Field {
	return []Field{
		count(Field{Key: KeyListings, Title: "Listings", has: "%s listings", Counted: true, Least: 1, Most: 10_000,
			Explanation: "How many services an account may have. A retired one does not count."}, func(l *Limits) *int { return &l.Listings }),
		count(Field{Key: KeyEndpoints, Title: "Endpoints of a listing", has: "%s endpoints in a listing", Counted: true, Least: 1, Most: 100,
			Explanation: "How many endpoints one service may sell at a time. A retired one does not count."}, func(l *Limits) *int { return &l.Endpoints }),
		count(Field{Key: KeyTrialCallsPerDay, Title: "Trial calls of an endpoint", has: "%s trial calls a day for an endpoint", Counted: true, Least: 0, Most: 1_000_000,
			Explanation: "How many calls a day (of UTC) an endpoint may give away, to all callers together. Its provider chooses the number, which may be 0, up to this one."},
			func(l *Limits) *int { return &l.TrialCallsPerDay }).showing(func(n int64) string { return whole(n) + " a day" }),
		span(Field{Key: KeyProbeEvery, Title: "Liveness check", has: "a liveness check every %s", fewer: true, Least: int64(probeEveryMin / time.Second), Most: int64(probeEveryMax / time.Second),
			Explanation: "How often a service is asked whether it lives while nobody calls it. One that people want is asked more often, in every plan."},
			func(l *Limits) *time.Duration { return &l.ProbeEvery }).showing(func(n int64) string { return "every " + strings.TrimPrefix(spell(n), "1 ") }),
		count(Field{Key: KeyFeeBPS, Title: "Fee", has: "a fee of %s", fewer: true, Least: 0, Most: 10_000,
			Explanation: "What we keep of the price of a served call, rounded down to the token's smallest unit; the provider gets the rest. It is that of the moment in which the call's payment is taken."},
			func(l *Limits) *int { return &l.FeeBPS }).showing(percent),
		count(Field{Key: KeyPriority, Title: "Priority", has: "priority %s", Least: 0, Most: 1_000,
			Explanation: "Refunds and payouts always come first. When less than a tenth is left of what a facilitator may settle in a day, new calls of services with the higher number are let in for longer."},
			func(l *Limits) *int { return &l.Priority }),
		span(Field{Key: KeyAnswerRetention, Title: "Answers kept", has: "answers kept for %s", Least: 60, Most: int64(720 * time.Hour / time.Second),
			Explanation: "How long a caller can fetch a served answer again without paying again."}, func(l *Limits) *time.Duration { return &l.AnswerRetention }),
		count(Field{Key: KeyPayoutThreshold, Title: "Payout threshold", has: "payouts from %s on", fewer: true, Least: 1, Most: 1_000_000,
			Explanation: "From which balance on an account is paid out by itself, for each token and network, of calls whose payment is final. Less is paid out when its provider asks for it."},
			func(l *Limits) *int { return &l.PayoutThreshold }).showing(dollars),
	}
}

// Field returns the field of a key; the zero one for a key that there is not.
func (k Key) Field() Field {
	for _, f := range Fields() {
		if f.Key == k {
			return f
		}
	}
	return Field{}
}

// Of is the value as a number, in the unit of the key's name.
func (f Field) Of(l Limits) int64 { return f.get(l) }

// Set changes the value, in the same unit.
func (f Field) Set(l *Limits, value int64) { f.set(l, value) }

// Show is the value for people.
func (f Field) Show(l Limits) string { return f.show(f.get(l)) }

// ShowValue is a value of it for people, such as how much of it is used.
func (f Field) ShowValue(n int64) string { return f.show(n) }

// Better says whether a plan has more of it than another.
func (f Field) Better(a, b Limits) bool {
	if f.fewer {
		return f.get(a) < f.get(b)
	}
	return f.get(a) > f.get(b)
}

// Check says what is wrong with a value; empty for a good one.
func (f Field) Check(value int64) string {
	if value < f.Least || value > f.Most {
		return fmt.Sprintf("%d to %d", f.Least, f.Most)
	}
	return ""
}

func (f Field) showing(show func(int64) string) Field { f.show = show; return f }

func count(f Field, at func(*Limits) *int) Field {
	f.get = func(l Limits) int64 { return int64(*at(&l)) }
	f.set = func(l *Limits, value int64) { *at(l) = int(value) }
	f.show = whole
	return f
}

func span(f Field, at func(*Limits) *time.Duration) Field {
	f.get = func(l Limits) int64 { return int64(*at(&l) / time.Second) }
	f.set = func(l *Limits, value int64) { *at(l) = time.Duration(value) * time.Second }
	f.show = spell
	return f
}

// whole groups digits as the pages do: 10,000.
func whole(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// spell says a number of seconds in the largest unit that it is whole in; a day is 24 hours.
func spell(seconds int64) string {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	switch {
	case seconds > day && seconds%day == 0:
		return units(seconds/day, "day")
	case seconds >= hour && seconds%hour == 0:
		return units(seconds/hour, "hour")
	case seconds >= minute && seconds%minute == 0:
		return units(seconds/minute, "minute")
	}
	return units(seconds, "second")
}

func units(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return whole(n) + " " + unit + "s"
}

// dollars says US cents: $10, $2.50.
func dollars(cents int64) string {
	if cents%100 == 0 {
		return "$" + whole(cents/100)
	}
	return fmt.Sprintf("$%s.%02d", whole(cents/100), cents%100)
}

func percent(bps int64) string { return strings.TrimSpace(decimal.New(bps, -2).String() + " %") }
