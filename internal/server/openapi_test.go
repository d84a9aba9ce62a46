package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/identity"
	"market/internal/letter"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/plan"
	"market/internal/reconcile"
	"market/internal/refund"
	"market/internal/refusal"
)

func newTestServer() *Server {
	return New(Config{PublicURL: "https://shop.example", AdminToken: "a-token-of-the-tests", Log: zerolog.Nop(), Now: time.Now, Plans: plan.BuiltIn(500, 24*time.Hour)})
}

var parameter = regexp.MustCompile(`:([a-z]+)`)

func TestOpenAPI_DescribesEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	var served, described []string
	s := newTestServer()
	forPeople := map[string]bool{} // what is for people alone is no part of the API
	for _, r := range slices.Concat(s.pageRoutes(), s.accountPageRoutes(), s.adminPageRoutes()) {
		forPeople[r.method+r.path] = true
	}
	for _, r := range s.routes().Routes() {
		if forPeople[r.Method+r.Path] {
			continue
		}
		path := parameter.ReplaceAllString(r.Path, "{$1}")
		path = strings.Replace(path, "/sources/*", "/sources/{name}/try", 1) // the name has slashes
		path = strings.Replace(path, "/*", "/{service}/{path}", 1)
		served = append(served, r.Method+" "+path)
	}
	paths, _ := openDocument(t).at("/paths")
	for path, item := range paths.(map[string]any) {
		for name := range item.(map[string]any) {
			if name != "parameters" && name != "description" {
				described = append(described, strings.ToUpper(name)+" "+path)
			}
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if len(served) == 0 || !slices.Equal(served, described) {
		t.Errorf("served and described differ:\n%s\n\n%s", strings.Join(served, "\n"), strings.Join(described, "\n"))
	}
}

func TestOpenAPI_EveryOperationHasANameAndEveryParameterOfItsPath(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	seen := map[any]bool{}
	d.walk(func(pointer string, object map[string]any) {
		id, ok := object["operationId"]
		if !ok {
			return
		}
		if seen[id] {
			t.Errorf("two operations are called %s", id)
		}
		seen[id] = true
		item := pointer[:strings.LastIndex(pointer, "/")]
		declared := append(d.parameters(item), d.parameters(pointer)...)
		for _, name := range inBraces.FindAllStringSubmatch(item, -1) {
			if !slices.Contains(declared, "path "+name[1]) {
				t.Errorf("%s does not declare %s", pointer, name[1])
			}
		}
	})
}

var inBraces = regexp.MustCompile(`\{([a-z]+)\}`)

// parameters lists what a path or an operation declares, as "path slug".
func (d document) parameters(pointer string) (out []string) {
	v, _ := d.at(pointer + "/parameters")
	list, _ := v.([]any)
	for i := range list {
		_, p := d.deref(fmt.Sprintf("%s/parameters/%d", pointer, i))
		out = append(out, fmt.Sprint(p["in"], " ", p["name"]))
	}
	return out
}

func limitKeys() (keys []plan.Key) {
	for _, f := range plan.Fields() {
		keys = append(keys, f.Key)
	}
	return keys
}

func TestOpenAPI_ItsWordsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	for pointer, want := range map[string][]string{
		"/components/schemas/Reason":                   words(call.Reasons()),
		"/components/schemas/LimitKey":                 words(limitKeys()),
		"/components/schemas/Outcome":                  words(call.Outcomes()),
		"/components/schemas/Party":                    words(call.Parties()),
		"/components/schemas/Call/properties/state":    words(call.States()),
		"/components/schemas/Service/properties/state": words(catalog.States()),
		"/components/schemas/Cause":                    words(catalog.Causes()),
		"/components/schemas/Refund/properties/state": words([]refund.State{refund.StateOwed, refund.StateSent, refund.StateConfirmed,
			refund.StateParked, refund.StateVoid}),
		"/components/schemas/OutcomeReceipt/properties/refundState": {payment.RefundOwed, payment.RefundNone, payment.RefundVoid},
		"/components/schemas/Action":                                words(audit.Actions()),
		"/components/schemas/ProviderNotice/properties/kind":        words(letter.Kinds()),
		"/components/schemas/Sending/properties/channel":            words(letter.Channels()),
		"/components/schemas/MoneyDifference/properties/kind":       words(reconcile.Kinds()),
		"/components/schemas/SourceState":                           words(sourceStates),
		"/components/schemas/AuditEntry/properties/subject_kind":    words(audit.Kinds()),
		"/components/headers/Market-Outcome/schema":                 append(words(call.Outcomes()), outcomePending),
	} {
		got := d.enum(t, pointer)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: too much in the document: %q, missing: %q", pointer, without(got, want), without(want, got))
		}
	}
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func words[T ~string](values []T) (out []string) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

func TestOpenAPI_EveryReferenceLeadsSomewhereAndEverySchemaCompiles(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	seen := 0
	d.walk(func(pointer string, object map[string]any) {
		if to, ok := object["$ref"].(string); ok {
			if _, there := d.at(strings.TrimPrefix(to, "#")); !there {
				t.Errorf("%s leads to %s, which is not there", pointer, to)
			}
		}
		at := pointer
		if _, ok := object["schema"]; ok {
			at += "/schema"
		} else if !strings.HasPrefix(pointer, "/components/schemas/") || strings.Count(pointer, "/") != 3 {
			return
		}
		seen++
		if err := d.check(at, nil); err != nil && strings.HasPrefix(err.Error(), "compile") {
			t.Errorf("%s: %v", at, err)
		}
	})
	if seen < 50 {
		t.Errorf("%d schemas were found, the document has more", seen)
	}
}

// withoutExample are bodies that no example could make clearer.
var withoutExample = []string{"/components/responses/Error", "/paths/~1openapi.json"}

func TestOpenAPI_EveryBodyHasAnExampleThatFits(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	seen := 0
	d.walk(func(pointer string, object map[string]any) {
		inContent := strings.HasSuffix(pointer, "/content/application~1json") || strings.HasSuffix(pointer, "/content/application~1problem+json")
		if !inContent || slices.ContainsFunc(withoutExample, func(p string) bool { return strings.HasPrefix(pointer, p) }) {
			return
		}
		example, ok := object["example"]
		if !ok {
			t.Errorf("%s has no example", pointer)
			return
		}
		seen++
		if err := d.check(pointer+"/schema", example); err != nil {
			t.Errorf("%s: %v", pointer, err)
		}
	})
	if seen < 15 {
		t.Errorf("%d examples were found, the document has more", seen)
	}
}

// views are the structs that the server encodes, by the schema that describes them.
var views = map[string]reflect.Type{
	"ServiceHeader": reflect.TypeFor[headerView](), "ServiceSecret": reflect.TypeFor[secretView](),
	"ServiceRecord": reflect.TypeFor[recordView](), "RecordWindow": reflect.TypeFor[tallyView](), "Rule": reflect.TypeFor[ruleView](),
	"AnswerRule": reflect.TypeFor[answerView](), "FoundCall": reflect.TypeFor[foundView](),
	"Figures": reflect.TypeFor[figuresView](), "Measured": reflect.TypeFor[measuredView](), "MeasuredWindow": reflect.TypeFor[measuredWindowView](),
	"MeasuredEndpoint": reflect.TypeFor[measuredEndpointView](), "Traffic": reflect.TypeFor[trafficView](), "Count": reflect.TypeFor[countView](),
	"Latency": reflect.TypeFor[latencyView](), "Enforced": reflect.TypeFor[enforcedView](),
	"Service": reflect.TypeFor[serviceView](), "Probe": reflect.TypeFor[probeView](), "Check": reflect.TypeFor[checkView](), "Endpoint": reflect.TypeFor[endpointView](),
	"Capacity": reflect.TypeFor[capacityView](),
	"Call":     reflect.TypeFor[callView](), "Problem": reflect.TypeFor[problem](), "CallLink": reflect.TypeFor[callLink](),
	"MoneyStanding": reflect.TypeFor[moneyView](), "MoneyPromise": reflect.TypeFor[promiseView](), "MoneyWallet": reflect.TypeFor[walletView](),
	"MoneyDifference": reflect.TypeFor[differenceView](), "MoneyEntry": reflect.TypeFor[entryView](),
	"Money": reflect.TypeFor[money.Money](), "Payment": reflect.TypeFor[paidJSON](), "Refund": reflect.TypeFor[refundJSON](),
	"Field": reflect.TypeFor[refusal.Field](), "Challenge": reflect.TypeFor[challengeBody](), "Strike": reflect.TypeFor[strikeView](),
	"TermsV1": reflect.TypeFor[payment.V1Requirements](), "Resource": reflect.TypeFor[payment.Resource](),
	"PaymentResponse": reflect.TypeFor[payment.SettleResponse](), "SignedReceipt": reflect.TypeFor[payment.Signed](),
	"Event": reflect.TypeFor[eventView](), "Checked": reflect.TypeFor[checkedView](), "LastCheck": reflect.TypeFor[lastCheckView](), "Revision": reflect.TypeFor[revisionView](),
	"Standing": reflect.TypeFor[standingView](),
	"Spread":   reflect.TypeFor[spreadView](), "Evidence": reflect.TypeFor[evidenceView](), "Said": reflect.TypeFor[saidView](), "Others": reflect.TypeFor[othersView](),
	"StrikeSummary": reflect.TypeFor[summaryView](), "Clears": reflect.TypeFor[clearsView](), "Delisting": reflect.TypeFor[delistingView](),
	"StrikePage": reflect.TypeFor[strikePage](), "ServiceStrikes": reflect.TypeFor[serviceStrikesView](),
	"Appeal": reflect.TypeFor[appealView](), "Answered": reflect.TypeFor[answeredView](), "Case": reflect.TypeFor[delivery.Case](),
	"Source": reflect.TypeFor[sourceView](), "SourceReason": reflect.TypeFor[sourceReason](), "SourceNotice": reflect.TypeFor[sourceNotice](), "SourceTried": reflect.TypeFor[sourceTried](),
	"Decision": reflect.TypeFor[decisionView](), "AuditEntry": reflect.TypeFor[auditView](),
	"Notices": reflect.TypeFor[noticesView](), "NewNoticeSecret": reflect.TypeFor[newNoticeSecretView](), "ProviderNotice": reflect.TypeFor[letterView](),
	"ProviderNoticeData": reflect.TypeFor[letter.Data](), "ToldStrike": reflect.TypeFor[letter.Strike](), "StrikeStanding": reflect.TypeFor[letter.Standing](),
	"ToldPayout": reflect.TypeFor[letter.Payout](), "PaidTo": reflect.TypeFor[letter.PaidTo](),
	"Sending": reflect.TypeFor[sendingView](),
	"Receipt": reflect.TypeFor[payment.Receipt](), "OutcomeReceipt": reflect.TypeFor[payment.OutcomeReceipt](),
}

func TestOpenAPI_MembersAreThoseOfTheViews(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	for schema, view := range views {
		wantAll, wantRequired := membersOf(view)
		slices.Sort(wantAll)
		slices.Sort(wantRequired)
		all, required := d.members("/components/schemas/" + schema)
		if !slices.Equal(all, wantAll) {
			t.Errorf("%s: the document has %q, the server writes %q", schema, all, wantAll)
		}
		if !slices.Equal(required, wantRequired) {
			t.Errorf("%s: the document requires %q, the server always writes %q", schema, required, wantRequired)
		}
	}
}

// membersOf reads what a struct encodes to: every member, and those that are never left out.
func membersOf(t reflect.Type) (all, always []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			a, b := membersOf(f.Type)
			all, always = append(all, a...), append(always, b...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		all = append(all, name)
		if options != "omitempty" {
			always = append(always, name)
		}
	}
	return all, always
}

func TestOpenAPI_IsServedUnderThePublicURL(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	newTestServer().Public().Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*",
	} {
		if got := answer.Header().Get(name); answer.Code != http.StatusOK || got != want {
			t.Errorf("status %d, %s is %q, want %q", answer.Code, name, got, want)
		}
	}
	served, err := jsonschema.UnmarshalJSON(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := openDocument(t).root.(map[string]any)
	if fmt.Sprint(want["servers"]) != "[map[url:https://market.example]]" {
		t.Fatalf("the document's servers are %v", want["servers"])
	}
	want["servers"] = []any{map[string]any{"url": "https://shop.example"}}
	if !reflect.DeepEqual(served, any(want)) {
		t.Error("more than the server's URL differs from the document")
	}
}

// Who may use an operation is in the document, as the table of routes has it.
func TestOpenAPI_SaysOfEachRouteWhoMayUseIt(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	s := newTestServer()
	for _, r := range slices.Concat(s.callRoutes(), s.apiRoutes(), s.adminRoutes()) {
		path := strings.Replace(strings.Replace(parameter.ReplaceAllString(r.path, "{$1}"), "/sources/*", "/sources/{name}/try", 1), "/*", "/{service}/{path}", 1)
		found, _ := d.at("/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(path) + "/" + strings.ToLower(r.method))
		operation, _ := found.(map[string]any)
		var got []string
		needs, _ := operation["security"].([]any)
		for _, scheme := range needs {
			for name := range scheme.(map[string]any) { //nolint:forcetypeassert // the document is ours
				got = append(got, name)
			}
		}
		var want []string
		switch r.access {
		case account:
			want = []string{"session"}
		case admin, owner, seller:
			want = []string{"adminToken", "session"}
		case anyone, reader, visitor, adminDoor, adminPage, accountDoor, accountPage, accessEnd:
		}
		if want != nil && r.scope != "" {
			want = append(want, "apiKey")
		}
		scope, _ := operation["x-scope"].(string)
		if !slices.Equal(got, want) || want != nil && scope != string(r.scope) {
			t.Errorf("%s %s: %q and the scope %q, want %q and %q", r.method, r.path, got, scope, want, r.scope)
		}
	}
	scopes := d.enum(t, "/components/schemas/Scope")
	if !slices.Equal(scopes, words(append(identity.Scopes(), identity.Scanner))) {
		t.Errorf("scopes %q", scopes)
	}
}
