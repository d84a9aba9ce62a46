package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"testing"
)

// enforced names, for each member of Limits, the tests that sit at the limit and one above it. A limit that is promised and not held, or held and not
// promised, is found here: TestFields_AreTheMembersOfLimits has every member shown.
var enforced = map[string][][2]string{
	"Listings":  {{"catalog/plan_test.go", "TestStore_Create_APlanHasSoManyListingsAndNoneMore"}, {"catalog/plan_test.go", "TestStore_Create_ReplicasCannotPassTheLimitTogether"}},
	"Endpoints": {{"catalog/plan_test.go", "TestStore_AddEndpoint_APlanHasSoManyEndpointsInAListing"}},
	"TrialCallsPerDay": {{"catalog/plan_test.go", "TestStore_EditEndpoint_APlanHasSoManyTrialCallsADay"},
		{"plan/plan_test.go", "TestLimits_TrialCalls_AreThoseOfThePlanWhereTheListingOffersMore"}},
	"ProbeEvery": {{"delivery/plan_test.go", "TestRounds_AServiceIsAskedAsOftenAsItsOwnersPlanSays"}},
	"FeeBPS":     {{"app/plans_test.go", "TestPlans_ACallHasTheFeeAndTheRetentionOfItsServicesOwner"}, {"delivery/plan_test.go", "TestPath_LimitsOf_ShareAndFeeAreThePriceWhoeverOwnsTheService"}},
	"Priority":   {{"source/rank_test.go", "TestMeter_ReserveCall_WhenLittleIsLeftTheHigherRankComesFirst"}, {"app/plans_test.go", "TestPlans_WhenLittleIsLeftTheLargerPlanIsServedForLonger"}},
	"AnswerRetention": {{"delivery/plan_test.go", "TestRecorder_AnAnswerIsKeptAsLongAsThePlanSays"},
		{"app/plans_test.go", "TestPlans_ACallHasTheFeeAndTheRetentionOfItsServicesOwner"}},
}

func TestLimits_EachIsEnforcedByATestThatThereIs(t *testing.T) {
	t.Parallel()
	files := map[string]map[string]bool{}
	tests := func(file string) map[string]bool {
		t.Helper()
		if files[file] == nil {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files[file] = map[string]bool{}
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					files[file][f.Name.Name] = true
				}
			}
		}
		return files[file]
	}
	of := reflect.TypeFor[Limits]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		if len(enforced[name]) == 0 {
			t.Errorf("no test shows that %s is enforced", name)
		}
		for _, test := range enforced[name] {
			if !tests(test[0])[test[1]] {
				t.Errorf("%s is said to be enforced by %s, which is not in internal/%s", name, test[1], test[0])
			}
		}
	}
	if len(enforced) != of.NumField() {
		t.Errorf("%d limits have tests, and there are %d", len(enforced), of.NumField())
	}
}
