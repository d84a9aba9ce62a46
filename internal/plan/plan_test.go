package plan

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"market/internal/call"
)

var usual = BuiltIn(500, 24*time.Hour)

func TestBuiltIn_IsGoodAtEveryFeeAndRetention(t *testing.T) {
	t.Parallel()
	for _, fee := range []int{0, 1, 2, 499, 500, 10_000} {
		for _, retention := range []time.Duration{time.Minute, 24 * time.Hour, 100 * time.Hour, 720 * time.Hour} {
			table := BuiltIn(fee, retention)
			for _, err := range table.Check() {
				t.Errorf("fee %d, retention %s: %v", fee, retention, err)
			}
			if got := table[0]; got.FeeBPS != fee || got.AnswerRetention != retention {
				t.Errorf("the first plan has fee %d and retention %s, want those of the configuration: %d and %s", got.FeeBPS, got.AnswerRetention, fee, retention)
			}
		}
	}
}

func TestTable_Of_IsTheFirstPlanForNoNameAndForOneThatIsGone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "free", "free": "free", "pro": "pro", "scale": "scale", "gold": "free"} {
		if got := usual.Of(name).Name; got != want {
			t.Errorf("the plan of %q is %s, want %s", name, got, want)
		}
	}
	if got := (Table{}).Of("pro"); got != (Plan{}) {
		t.Errorf("a table without plans has %v", got)
	}
}

func TestTable_Larger_PassesOverPlansThatHaveNoMore(t *testing.T) {
	t.Parallel()
	table := Table{{"a", "A", Limits{Listings: 1, Endpoints: 1}}, {"b", "B", Limits{Listings: 1, Endpoints: 5}}, {"c", "C", Limits{Listings: 9, Endpoints: 5}}}
	tests := map[string]struct {
		name string
		key  Key
		want string
	}{
		"the next one has more":             {"a", KeyEndpoints, "b"},
		"the next one has no more":          {"a", KeyListings, "c"},
		"a plan that is gone is the first":  {"gone", KeyListings, "c"},
		"no later one has more":             {"b", KeyEndpoints, ""},
		"there is no plan after the last":   {"c", KeyListings, ""},
		"from the plan before to the last":  {"b", KeyListings, "c"},
		"an account without a name of plan": {"", KeyEndpoints, "b"},
	}
	for sentence, test := range tests {
		if got, _ := table.Larger(test.name, test.key); got.Name != test.want {
			t.Errorf("%s: got %q, want %q", sentence, got.Name, test.want)
		}
	}
}

func TestTable_Allows_EndsExactlyAtTheLimitAndNamesThePlanAndTheNext(t *testing.T) {
	t.Parallel()
	for wanted, refused := range map[int64]bool{2: false, 3: false, 4: true} {
		if err := usual.Allows("free", KeyListings, wanted); (err != nil) != refused {
			t.Errorf("%d listings on the free plan: %v, refused should be %t", wanted, err, refused)
		}
	}
	tests := map[string]struct {
		plan string
		key  Key
		text string
		next string
	}{
		"listings of the first plan":  {"free", KeyListings, "the free plan has 3 listings; pro has 20", "pro"},
		"an account without a name":   {"", KeyListings, "the free plan has 3 listings; pro has 20", "pro"},
		"endpoints of the middle one": {"pro", KeyEndpoints, "the pro plan has 50 endpoints in a listing; scale has 100", "scale"},
		"trial calls":                 {"free", KeyTrialCallsPerDay, "the free plan has 100 trial calls a day for an endpoint; pro has 1,000", "pro"},
		"the largest plan":            {"scale", KeyListings, "the scale plan has 200 listings, and no plan has more", ""},
	}
	for sentence, test := range tests {
		no := usual.Refuse(test.plan, test.key)
		if no.Detail != test.text || no.Reason != call.PlanLimit {
			t.Errorf("%s: %s %q, want %q", sentence, no.Reason, no.Detail, test.text)
		}
		if got := no.Plan; got.Limit != string(test.key) || got.Value != test.key.Field().Of(usual.Of(test.plan).Limits) || got.Plan != usual.Of(test.plan).Name {
			t.Errorf("%s: the members are %+v", sentence, got)
		}
		if next := no.Plan.Next; (next == nil) != (test.next == "") || next != nil && next.Name != test.next {
			t.Errorf("%s: the next plan is %+v, want %q", sentence, next, test.next)
		}
	}
}

func TestTable_Rank_CountsPrioritiesAndNotPlans(t *testing.T) {
	t.Parallel()
	table := Table{{"a", "A", Limits{Priority: 3}}, {"b", "B", Limits{Priority: 3}}, {"c", "C", Limits{Priority: 7}}}
	for priority, want := range map[int][2]int{0: {0, 2}, 3: {0, 2}, 5: {1, 2}, 7: {1, 2}, 8: {1, 2}} {
		if rank, of := table.Rank(priority); rank != want[0] || of != want[1] {
			t.Errorf("priority %d: rank %d of %d, want %v", priority, rank, of, want)
		}
	}
	if rank, of := (Table{}).Rank(1); rank != 0 || of != 0 {
		t.Errorf("a table without plans ranks %d of %d", rank, of)
	}
}

func TestTerms_WhatBelongsToNobodyHasNoLimitAndTheConfiguredFee(t *testing.T) {
	t.Parallel()
	terms := NewTerms(usual, 700, 12*time.Hour)
	own := terms.Of(false, "pro")
	if own.FeeBPS != 700 || own.AnswerRetention != 12*time.Hour || own.Priority != 3 || own.TrialCalls(1_000_000) != 1_000_000 || own.ProbeEvery != time.Hour {
		t.Errorf("the operator's own listing has %+v", own)
	}
	if got := terms.Of(true, "pro"); got != usual[1].Limits {
		t.Errorf("a listing of a pro account has %+v", got)
	}
}

func TestLimits_TrialCalls_AreThoseOfThePlanWhereTheListingOffersMore(t *testing.T) {
	t.Parallel()
	for offered, want := range map[int]int{0: 0, 99: 99, 100: 100, 101: 100} {
		if got := usual[0].TrialCalls(offered); got != want {
			t.Errorf("%d offered on a plan of 100: %d, want %d", offered, got, want)
		}
	}
}

func TestTable_Check_NamesEveryPlaceAtOnce(t *testing.T) {
	t.Parallel()
	bad := BuiltIn(500, 24*time.Hour)
	bad[0].Name, bad[0].Listings = "Free!", 0
	bad[1].Title = "<b>"
	bad[2].Name, bad[2].FeeBPS, bad[2].AnswerRetention = "pro", 301, time.Hour
	var text strings.Builder
	for _, err := range bad.Check() {
		text.WriteString(err.Error() + "\n")
	}
	for _, want := range []string{
		"plans[0].name: got Free!", "plans[0].limits.listings: got 0, expected 1 to 10000", "plans[1].title: got <b>", "plans[2].name: got pro, expected a name that is not taken",
		"plans[2].limits.fee_bps: got 301, expected no worse than 300, which plan pro before it has", "plans[2].limits.answer_retention_seconds: got 3600, expected no worse than 259200",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no line says %q:\n%s", want, text.String())
		}
	}
	if errs := (Table{}).Check(); len(errs) != 1 {
		t.Errorf("a table without plans: %v", errs)
	}
}

// Whoever adds a limit adds how it is shown: each member of the struct is read, written and shown by one field, and each field is one member.
func TestFields_AreTheMembersOfLimits(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[Limits]()
	if len(Fields()) != of.NumField() {
		t.Errorf("%d fields for %d members", len(Fields()), of.NumField())
	}
	for i := range of.NumField() {
		var none, one Limits
		member := reflect.ValueOf(&one).Elem().Field(i)
		member.SetInt(7)
		if member.Type() == reflect.TypeFor[time.Duration]() {
			member.SetInt(int64(7 * time.Second))
		}
		var shown []Field
		for _, f := range Fields() {
			if f.Of(one) != f.Of(none) {
				shown = append(shown, f)
			}
		}
		if len(shown) != 1 {
			t.Errorf("%s is shown by %d fields, want 1", of.Field(i).Name, len(shown))
			continue
		}
		f, again := shown[0], Limits{}
		if f.Set(&again, 7); again != one || f.Of(one) != 7 {
			t.Errorf("%s: set to 7 it is %+v, and read %d", f.Key, again, f.Of(one))
		}
		if f.Key == "" || f.Title == "" || !strings.HasSuffix(f.Explanation, ".") || !strings.Contains(f.has, "%s") || f.Show(one) == f.Show(none) || f.Most <= f.Least ||
			f.Key.Field().Title != f.Title {
			t.Errorf("%s is not whole: %+v", of.Field(i).Name, f)
		}
	}
}

func TestField_Show_SpeaksAsPeopleDo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ got, want string }{
		"a fee of whole percent":  {KeyFeeBPS.Field().Show(Limits{FeeBPS: 500}), "5 %"},
		"a fee of less":           {KeyFeeBPS.Field().Show(Limits{FeeBPS: 25}), "0.25 %"},
		"no fee":                  {KeyFeeBPS.Field().Show(Limits{}), "0 %"},
		"an hour":                 {KeyProbeEvery.Field().Show(Limits{ProbeEvery: time.Hour}), "every hour"},
		"minutes":                 {KeyProbeEvery.Field().Show(Limits{ProbeEvery: 15 * time.Minute}), "every 15 minutes"},
		"a day is 24 hours":       {KeyAnswerRetention.Field().Show(Limits{AnswerRetention: 24 * time.Hour}), "24 hours"},
		"days":                    {KeyAnswerRetention.Field().Show(Limits{AnswerRetention: 168 * time.Hour}), "7 days"},
		"seconds":                 {KeyAnswerRetention.Field().Show(Limits{AnswerRetention: 90 * time.Second}), "90 seconds"},
		"whole dollars":           {KeyPayoutThreshold.Field().Show(Limits{PayoutThreshold: 100_000}), "$1,000"},
		"dollars and cents":       {KeyPayoutThreshold.Field().Show(Limits{PayoutThreshold: 205}), "$2.05"},
		"thousands are set apart": {KeyTrialCallsPerDay.Field().Show(Limits{TrialCallsPerDay: 1_000_000}), "1,000,000 a day"},
	}
	for sentence, test := range tests {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", sentence, test.got, test.want)
		}
	}
}
