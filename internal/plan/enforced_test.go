package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A proof is a test that shows a limit enforced, and what it has to speak of to do so: a body that lost it shows nothing.
type proof struct{ file, test, of string }

// enforced names, for each member of Limits, the tests that sit at the limit and one above it. A limit that is promised and not held, or held and not
// promised, is found here: TestFields_AreTheMembersOfLimits has every member shown.
var enforced = map[string][]proof{
	"Listings": {{"catalog/plan_test.go", "TestStore_Create_APlanHasSoManyListingsAndNoneMore", "KeyListings"},
		{"catalog/plan_test.go", "TestStore_Create_ReplicasCannotPassTheLimitTogether", "PlanLimit"}},
	"Endpoints": {{"catalog/plan_test.go", "TestStore_AddEndpoint_APlanHasSoManyEndpointsInAListing", "KeyEndpoints"}},
	"TrialCallsPerDay": {{"catalog/plan_test.go", "TestStore_EditEndpoint_APlanHasSoManyTrialCallsADay", "KeyTrialCallsPerDay"},
		{"plan/plan_test.go", "TestLimits_TrialCalls_AreThoseOfThePlanWhereTheListingOffersMore", "TrialCalls"}},
	"ProbeEvery": {{"delivery/plan_test.go", "TestPath_Walk_AServiceIsAskedAtTheTickOfItsPlanHoweverLateARoundBegins", "ProbeEvery"},
		{"delivery/plan_test.go", "TestRounds_AServiceIsAskedAsOftenAsItsOwnersPlanSays", "walk"}},
	"FeeBPS": {{"app/plans_test.go", "TestPlans_ACallHasTheFeeAndTheRetentionOfItsServicesOwner", "fee_bps"},
		{"delivery/plan_test.go", "TestPath_LimitsOf_ShareAndFeeAreThePriceWhoeverOwnsTheService", "FeeBPS"}},
	"Priority": {{"source/rank_test.go", "TestMeter_ReserveCall_WhenLittleIsLeftTheHigherRankComesFirst", "ReserveCall"},
		{"app/plans_test.go", "TestPlans_WhenLittleIsLeftTheLargerPlanIsServedForLonger", "source_days"}},
	"AnswerRetention": {{"delivery/plan_test.go", "TestRecorder_AnAnswerIsKeptAsLongAsThePlanSays", "expires_at"},
		{"app/plans_test.go", "TestPlans_ACallHasTheFeeAndTheRetentionOfItsServicesOwner", "expires_at"}},
	"PayoutThreshold": {{"payout/maker_test.go", "TestMaker_Pass_PaysFromTheThresholdOfTheAccountsPlanOn", "PayoutThreshold"}},
}

func TestLimits_EachIsEnforcedByATestThatThereIs(t *testing.T) {
	t.Parallel()
	files := map[string]map[string]*ast.BlockStmt{}
	body := func(of proof) *ast.BlockStmt {
		t.Helper()
		if files[of.file] == nil {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(of.file)), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files[of.file] = map[string]*ast.BlockStmt{}
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					files[of.file][f.Name.Name] = f.Body
				}
			}
		}
		return files[of.file][of.test]
	}
	of := reflect.TypeFor[Limits]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		if len(enforced[name]) == 0 {
			t.Errorf("no test shows that %s is enforced", name)
		}
		for _, p := range enforced[name] {
			if wrong := p.wrong(body(p)); wrong != "" {
				t.Errorf("%s is said to be enforced by %s of internal/%s, which %s", name, p.test, p.file, wrong)
			}
		}
	}
	if len(enforced) != of.NumField() {
		t.Errorf("%d limits have tests, and there are %d", len(enforced), of.NumField())
	}
}

// wrong says why a body proves nothing; empty where it may.
func (p proof) wrong(body *ast.BlockStmt) string {
	if body == nil {
		return "is not there"
	}
	speaks, fails := false, false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			speaks = speaks || n.Name == p.of
		case *ast.BasicLit:
			speaks = speaks || strings.Contains(n.Value, p.of)
		case *ast.CallExpr:
			on, _ := n.Fun.(*ast.SelectorExpr)
			if on == nil {
				break
			}
			t, _ := on.X.(*ast.Ident)
			fails = fails || t != nil && t.Name == "t" && (on.Sel.Name == "Errorf" || on.Sel.Name == "Fatalf")
		}
		return true
	})
	switch {
	case !speaks:
		return "does not speak of " + p.of
	case !fails:
		return "never fails with what it found"
	}
	return ""
}

func TestProof_ABodyThatLostWhatItShowsProvesNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`t.Parallel()`:      "does not speak of ProbeEvery",
		`_ = ProbeEvery`:    "never fails with what it found",
		`t.Errorf("%d", 1)`: "does not speak of ProbeEvery",
		`if plan.ProbeEvery != 1 { t.Errorf("no")}`: "",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {"+text+"}", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := parsed.Decls[0].(*ast.FuncDecl)
		if got := (proof{of: "ProbeEvery"}).wrong(f.Body); got != want {
			t.Errorf("%s: it %q, want %q", text, got, want)
		}
	}
	if (proof{}).wrong(nil) == "" {
		t.Error("a test that is not there proves something")
	}
}
