package server

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/money"
	"market/internal/refund"
	"market/internal/refusal"
)

// strangers are texts that somebody else wrote, in each place where one may stand. B145.
const strangers = `</script><script>alert(1)</script>"'onfocus=alert(1) autofocus='` + "\u202e\u0000"

func strangersService() *catalog.Service {
	target := hostile(http.MethodGet, "/v1/{id}")
	v := target.Service
	v.ID, v.Description, v.BaseURL, v.State, v.StateReason = uuid.New(), strangers, "javascript:alert(1)", catalog.Delisted, strangers
	v.Tags, v.Broken = []string{strangers}, strangers
	target.Endpoint.Broken = strangers
	v.Endpoints = []*catalog.Endpoint{target.Endpoint}
	return v
}

func render(t *testing.T, page *template.Template, of any) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.Execute(&out, of); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// B145: whatever a provider, a caller or a link says is shown, or not, and does nothing.
func TestPages_ShowWhatStrangersWroteAndRunNothing(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	v := strangersService()
	values := url.Values{"query": {strings.Trim(strangers, "\x00")}, "tag": {strangers}, "network": {strangers}, "max_price_usd": {strangers}, strangers: {"1"}}
	query, err := catalog.ParseQuery(values)
	no, refused := err.(*refusal.Error)
	if !refused || len(no.Fields) != 4 {
		t.Fatalf("%+v, %v: want complaints about everything but the words", query, err)
	}
	record := delivery.Record{Call: call.NewID(), State: call.StateFailed, Outcome: call.Failed, Reason: call.Upstream5xx, Detail: strangers,
		Service: "evil", Method: "GET", Path: strangers, Network: testNetwork.ID, Refund: &refund.Refund{State: refund.StateParked, Why: strangers}}
	catalogOf := catalogPage{frame: s.frame(), Q: query, Problems: map[string]string{}, Total: 1, Rows: []catalogRow{s.catalogRow(v, scores{at: time.Unix(1, 0)})},
		Next: "/?" + values.Encode()}
	for _, field := range no.Fields {
		catalogOf.Problems[field.Name] = field.Message
	}
	catalogOf.fill(values, s)
	typed, err := findQuery(url.Values{"q": {strangers}}.Encode())
	if err == nil {
		t.Fatal("a stranger's text is taken for a transaction")
	}
	problem := s.newProblem(call.NotFound, 404)
	problem.Detail = strangers
	for name, page := range map[string]string{
		"catalog": render(t, catalogTemplate, catalogOf),
		"service": render(t, serviceTemplate, s.servicePage(v, []delivery.Tally{{Window: 24 * time.Hour}}, time.Unix(1, 0), []catalog.PriceChange{{Method: "GET", Path: strangers}})),
		"call":    render(t, callTemplate, s.callPage(record, s.callView(record))),
		"calls":   render(t, callsTemplate, callsPage{frame: s.frame(), Q: typed, Problem: "x", Found: []foundOnPage{{s.tellingOf(record), []fact{{Name: "x", Value: "x", Link: "javascript:alert(1)"}}}}}),
		"problem": render(t, problemTemplate, s.problemPage(problem, "/s/evil", "")),
	} {
		for _, bad := range []string{"<script", `"'onfocus`, ` onfocus="`, ` autofocus="`, "\u202e", `"javascript:`, "'javascript:"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s holds %q:\n%s", name, bad, page)
			}
		}
		if !strings.Contains(page, "alert(1)") {
			t.Errorf("%s does not show the text: the test shows nothing", name)
		}
	}
}

// A transaction leads to the explorer that the operator configured, over https, and nowhere else.
func TestExplorerLink_IsTheOperatorsOverHTTPS(t *testing.T) {
	t.Parallel()
	for explorer, want := range map[string]string{
		"https://sepolia.basescan.org":  "https://sepolia.basescan.org/tx/0x02",
		"https://sepolia.basescan.org/": "https://sepolia.basescan.org/tx/0x02",
		"http://sepolia.basescan.org":   "",
		"javascript:alert(1)//":         "",
		"":                              "",
	} {
		s := New(Config{Networks: []chain.Network{{ID: "eip155:84532", Explorer: explorer}}})
		if got := s.explorerLink("eip155:84532", "0x02"); got != want {
			t.Errorf("%q: %q, want %q", explorer, got, want)
		}
		if s.explorerLink("eip155:1", "0x02") != "" || s.explorerLink("eip155:84532", "") != "" {
			t.Error("another network, or no transaction, has a link")
		}
	}
}

func TestFrame_SaysWhereMoneyIsWorthNothing(t *testing.T) {
	t.Parallel()
	main := chain.Network{ID: "eip155:8453", ChainID: 8453, V1Name: "base"}
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"production":    {Config{Networks: []chain.Network{main}}, ""},
		"a test chain":  {Config{Networks: []chain.Network{main, testNetwork}}, "base-sepolia (eip155:84532) is a test network: its money is worth nothing."},
		"development":   {Config{Dev: true, Networks: []chain.Network{main}}, "Development mode: not for real money."},
		"no name in v1": {Config{Networks: []chain.Network{{ID: "eip155:1337", ChainID: 1337}}}, "eip155:1337 is a test network: its money is worth nothing."},
	} {
		if got := strings.Join(New(tt.config).frame().Banners, "|"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A person gets a page and a program a document, of the same status, at every address.
func TestPages_AreForBrowsersAndDocumentsForPrograms(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	s.catalog = catalog.New(time.Now, 0)
	public := s.Public().Handler
	for path, want := range map[string]int{
		"/nothing": 404, "/services": 404, "/services/x/y": 404, "/calls/x": 404, "/s/No-One/v1": 404, "/api/v1/nothing": 404, "/rules": 200, "/pricing": 200, "/calls": 200,
		"/calls?q=x": 400, "/calls?page=2": 400, "/api/v1/services?limit=0": 400,
	} {
		for _, byPerson := range []bool{true, false} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			if byPerson {
				r.Header = http.Header{"Accept": {"text/html,*/*;q=0.8"}, "User-Agent": {browser}}
			}
			answer := httptest.NewRecorder()
			public.ServeHTTP(answer, r)
			if !byPerson && path == "/calls" {
				want = http.StatusBadRequest // a program has to say what it looks for
			}
			if answer.Code != want {
				t.Errorf("%s for a person %v: %d, want %d", path, byPerson, answer.Code, want)
			}
			h := answer.Header()
			if got := strings.HasPrefix(h.Get("Content-Type"), "text/html"); got != byPerson {
				t.Errorf("%s for a person %v: %s", path, byPerson, h.Get("Content-Type"))
			}
			if byPerson && (h.Get("Content-Security-Policy") != pagePolicy || h.Get("X-Content-Type-Options") != "nosniff" ||
				h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store") {
				t.Errorf("%s: headers %v", path, h)
			}
		}
	}
	for _, wrong := range []string{"unsafe", "script", "*", "http:"} {
		if strings.Contains(pagePolicy, wrong) {
			t.Errorf("the policy of pages allows %q: %s", wrong, pagePolicy)
		}
	}
}

func TestAssets_ComeAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	public := newTestServer().Public().Handler
	for path, mime := range map[string]string{stylePath: "text/css; charset=utf-8", "/favicon.svg": "image/svg+xml", "/favicon.ico": "image/svg+xml"} {
		answer := httptest.NewRecorder()
		public.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != mime || answer.Body.Len() == 0 {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Header().Get("Content-Type"))
		}
	}
}

func TestGuide_IsTheDocumentAsText(t *testing.T) {
	t.Parallel()
	public := newTestServer().Public().Handler
	for path, want := range map[string]int{"/docs/api.md": 200, "/docs/outcomes.md": 200, "/docs/providers.md": 200, "/docs/receipts.md": 200,
		"/docs/operations.md": 404, "/docs/": 404, "/docs/..%2fdocs.go": 404, "/docs/.": 404} {
		answer := httptest.NewRecorder()
		public.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		h := answer.Header()
		if answer.Code != want || want == http.StatusOK && (h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(answer.Body.String(), "# ")) {
			t.Errorf("%s: %d %v", path, answer.Code, h)
		}
	}
}

func TestWords_RoundInNobodysFavour(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		percent(1): "100 %", percent(0.9999): "99.9 %", percent(0.982): "98.2 %", percent(0): "0 %", percent(1.0 / 3): "33.3 %",
		span(900 * time.Microsecond): "under 1 ms", span(time.Millisecond): "1 ms", span(999 * time.Millisecond): "999 ms",
		span(1250 * time.Millisecond): "1.3 s", span(90 * time.Second): "90 s", span(10 * time.Minute): "10 minutes", span(24 * time.Hour): "24 hours",
		roughly(999 * time.Millisecond): "one moment", roughly(1500 * time.Millisecond): "2 s", roughly(119400 * time.Millisecond): "119 s",
		roughly(119600 * time.Millisecond): "2 minutes", roughly(174 * time.Second): "3 minutes", roughly(2*time.Hour - time.Second): "2 hours", roughly(30*time.Hour + time.Minute): "30 hours",
		count(0): "0", count(999): "999", count(1000): "1,000", count(1048576): "1,048,576",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The steps of a call say what came to pass, whatever state it is in, and never that money moved which did not.
func TestStepsOf_TellEveryState(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	for _, state := range call.States() {
		r := delivery.Record{State: state, Network: testNetwork.ID, Amount: money.FromUnits(1), Transaction: common.HexToHash("0x02")}
		if state.Final() {
			r.Outcome, r.Proved, r.Asked = call.Outcome(state), state != call.StateRefused, state != call.StateCooldownRefused
		}
		r.Proved = r.Proved || state == call.Settled || state == call.Asked
		r.Asked = r.Asked || state == call.Asked
		steps := s.stepsOf(r)
		if len(steps) != 4 {
			t.Fatalf("%s: %d steps", state, len(steps))
		}
		for _, st := range steps {
			if st.Name == "" || st.Text == "" || !strings.Contains("good wait bad none", st.Tone) {
				t.Errorf("%s: %+v", state, st)
			}
		}
		if settled := steps[1].Name == "The payment is settled"; settled != r.Proved {
			t.Errorf("%s: the page says settled: %v", state, settled)
		}
	}
}

// What could not be read is not shown as nothing.
func TestRecord_WhatWasNotReadIsLeftOut(t *testing.T) {
	t.Parallel()
	if view := recordViewOf(time.Time{}, delivery.Tally{}); view != nil {
		t.Errorf("%+v", view)
	}
	s := newTestServer()
	v := &catalog.Service{ID: uuid.New(), Slug: "weather", State: catalog.Listed}
	if row := s.catalogRow(v, scores{}); row.Record != "not known just now" || row.Delivered != "" {
		t.Errorf("%+v", row)
	}
	if page := render(t, serviceTemplate, s.servicePage(v, nil, time.Time{}, nil)); strings.Contains(page, "<table") || !strings.Contains(page, "cannot be read just now") {
		t.Errorf("the page of a service whose record was not read:\n%s", page)
	}
}

func TestCatalogRow_SaysWhatBecameOfCallsThatShowNothing(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	v := &catalog.Service{ID: uuid.New(), State: catalog.Listed}
	for want, tally := range map[string]delivery.Tally{
		"no paid calls yet": {},
		"none that counts: 2 refused, 1 met its rest, 3 failed elsewhere, 4 left by the caller": {Refused: 2, Resting: 1, Elsewhere: 3, Left: 4},
		"no paid calls yet; 11 of 12 trials served":                                             {Trials: 12, TrialsServed: 11},
		"": {Served: 1, Refused: 2},
	} {
		row := s.catalogRow(v, scores{map[uuid.UUID]delivery.Tally{v.ID: tally}, time.Unix(1, 0)})
		if row.Record != want || (row.Delivered == "") != (want != "") {
			t.Errorf("%+v: %q, want %q", tally, row.Record, want)
		}
	}
}

// The page of a service names what it leaves out, and every promise of a refund.
func TestServicePage_HidesNothingOfAnEndpoint(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	long := json.RawMessage(`{"text":"` + strings.Repeat("x", shownBytesMax) + `"}`)
	v := &catalog.Service{ID: uuid.New(), Slug: "weather", State: catalog.Listed, Endpoints: []*catalog.Endpoint{
		{ID: uuid.New(), InputExample: long, OutputExample: long, InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: long}}}
	cut := []delivery.Tally{{Window: 24 * time.Hour}, {Window: 720 * time.Hour, Served: 5000, Since: time.Unix(86400, 0)}}
	page := render(t, serviceTemplate, s.servicePage(v, cut, time.Unix(1, 0), nil))
	for _, want := range []string{"The example input is too long", "The example answer is too long", "Schema of the input", "at most 1,048,576 bytes",
		"does not fit the output schema", "24 hours</th>", "30 days *</th>", "* 30 days: there were more calls, and the newest 5,000 are counted, since"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	v.Endpoints[0].OutputSchema = nil
	if strings.Contains(render(t, serviceTemplate, s.servicePage(v, nil, time.Time{}, nil)), "does not fit the output schema") {
		t.Error("an endpoint without an output schema promises one")
	}
}

// The record of the list and that of a service have the members that the document promises.
func TestRecordView_OfAServiceThatNobodyCalled(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(recordViewOf(time.Unix(1, 0), scores{}.of(uuid.New())))
	if err != nil || !strings.Contains(string(text), `"7d":{"n":0,"delivered":null,`) {
		t.Errorf("%s, %v", text, err)
	}
	if err := openDocument(t).fits("ServiceRecord", recordViewOf(time.Unix(1, 0), delivery.Tally{Window: 24 * time.Hour, Served: 3, Failed: 1, LastServed: time.Unix(1, 0), Since: time.Unix(1, 0)}, delivery.Tally{Window: 720 * time.Hour})); err != nil {
		t.Error(err)
	}
}
