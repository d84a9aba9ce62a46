package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// A Source says how something outside that can refuse us runs out, and how much of it may be used: a remote facilitator, a node of a chain, the mail
// relay.
type Source struct {
	Metered     bool            // a unit costs something, or is counted against something
	RunsOut     string          // RunsOutRate, RunsOutDaily or RunsOutPrepaid
	RetryWindow time.Duration   // for how long it is not asked after a refusal that does not say itself
	UnitUSD     decimal.Decimal // what a unit costs; zero: not known
	Guard       Guard
	BudgetURL   string // where it is topped up; empty: not known
	Refusals    []Refusal
}

// How a source runs out.
const (
	RunsOutRate    = "rate"    // free or paid elsewhere; it limits how fast it is asked
	RunsOutDaily   = "daily"   // a quota that is there again at UTC midnight
	RunsOutPrepaid = "prepaid" // a balance that somebody has to top up
)

// A Guard bounds the units of a day: at least Floor, and SurgePercent of the busiest day. The zero value is none.
type Guard struct {
	Floor        int64
	SurgePercent int64 // 0: Floor is the bound
}

// A Refusal is how else an answer looks that says that nothing is left: a status, words in its text, or both.
type Refusal struct {
	Status int    // 0: any
	Text   string // empty: any
}

// DefaultSource is what holds where nothing is said: no guard, and a limit of the rate.
func DefaultSource() Source { return Source{RunsOut: RunsOutRate, RetryWindow: time.Hour} }

// Limits of what is said of a source.
const (
	retryWindowMin = time.Minute
	retryWindowMax = 24 * time.Hour
	guardFloorMax  = 1_000_000_000_000
	// settlesFloorMin is the least floor of a facilitator: a tenth of it is the two units of one call.
	settlesFloorMin  = 20
	budgetURLMax     = 500
	refusalsMax      = 16
	refusalTextMax   = 200
	surgePercentMin  = 100
	surgePercentMost = 10_000
)

type sourceEntry struct {
	Metered     bool           `json:"metered"`
	RunsOut     string         `json:"runs_out"`
	RetryWindow string         `json:"retry_window"`
	UnitUSD     string         `json:"unit_usd"`
	Guard       *guardEntry    `json:"guard"`
	BudgetURL   string         `json:"budget_url"`
	Refusals    []refusalEntry `json:"refusals"`
}

type guardEntry struct {
	Floor int64        `json:"floor"`
	Surge *surgeNumber `json:"surge"`
}

type refusalEntry struct {
	Status int    `json:"status"`
	Text   string `json:"text"`
}

// given says whether anything is said.
func (e sourceEntry) given() bool {
	return e.Metered || e.RunsOut != "" || e.RetryWindow != "" || e.UnitUSD != "" || e.Guard != nil || e.BudgetURL != "" || len(e.Refusals) > 0
}

// A surgeNumber is a number as it was written: 3 or 1.5.
type surgeNumber string

// UnmarshalJSON takes any value; percent says whether it is one.
func (n *surgeNumber) UnmarshalJSON(text []byte) error {
	*n = surgeNumber(text)
	return nil
}

var surgeForm = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,2})?$`)

// percent has no other form than this, so that nothing is expanded which nobody would write.
func (n surgeNumber) percent() (int64, bool) {
	if !surgeForm.MatchString(string(n)) {
		return 0, false
	}
	percent := decimal.RequireFromString(string(n)).Shift(2).IntPart()
	return percent, surgePercentMin <= percent && percent <= surgePercentMost
}

// source checks what an entry says of itself as a source.
func (r *report) source(e sourceEntry) Source {
	s := DefaultSource()
	s.Metered, s.BudgetURL = e.Metered, e.BudgetURL
	if e.RunsOut != "" {
		known := e.RunsOut == RunsOutRate || e.RunsOut == RunsOutDaily || e.RunsOut == RunsOutPrepaid
		r.check("runs_out", known, e.RunsOut, "rate, daily or prepaid")
		s.RunsOut = e.RunsOut
	}
	if e.RetryWindow != "" {
		window, err := time.ParseDuration(e.RetryWindow)
		r.check("retry_window", err == nil && retryWindowMin <= window && window <= retryWindowMax, e.RetryWindow, "a duration from 1m to 24h")
		s.RetryWindow = window
	}
	if e.UnitUSD != "" {
		r.check("unit_usd", usdForm.MatchString(e.UnitUSD), e.UnitUSD, "US dollars such as 0.001")
		if usdForm.MatchString(e.UnitUSD) {
			s.UnitUSD = decimal.RequireFromString(e.UnitUSD)
		}
	}
	if e.Guard != nil {
		s.Guard = r.guard(*e.Guard)
	}
	if e.BudgetURL != "" && !isBudgetURL(e.BudgetURL) {
		r.say("budget_url", fmt.Sprintf("expected an http(s) URL without user, of at most %d characters", budgetURLMax))
	}
	r.check("refusals", len(e.Refusals) <= refusalsMax, len(e.Refusals), fmt.Sprintf("at most %d", refusalsMax))
	for i, shape := range e.Refusals {
		s.Refusals = append(s.Refusals, r.refusal(fmt.Sprintf("refusals[%d]", i), shape))
	}
	return s
}

func (r *report) guard(e guardEntry) Guard {
	g := Guard{Floor: e.Floor}
	r.check("guard.floor", 1 <= e.Floor && e.Floor <= guardFloorMax, e.Floor, fmt.Sprintf("units a day from 1 to %d", int64(guardFloorMax)))
	if e.Surge != nil {
		percent, good := e.Surge.percent()
		r.check("guard.surge", good, string(*e.Surge), "a number from 1 to 100 such as 3 or 1.5")
		g.SurgePercent = percent
	}
	return g
}

// refusal wants words where a status alone would take every good answer for a refusal.
func (r *report) refusal(member string, e refusalEntry) Refusal {
	r.check(member+".status", e.Status == 0 || 100 <= e.Status && e.Status <= 599, e.Status, "an HTTP status")
	r.check(member+".text", len(e.Text) <= refusalTextMax, e.Text, fmt.Sprintf("at most %d bytes", refusalTextMax))
	if strings.TrimSpace(e.Text) == "" && e.Status < 400 {
		r.say(member, "expected a text, or a status of 400 or above: every good answer would be taken for a refusal")
	}
	return Refusal(e)
}

func isBudgetURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && isWeb(u) && u.User == nil && len(text) <= budgetURLMax
}
