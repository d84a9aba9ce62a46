package server

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/notify"
	"market/internal/outage"
	"market/internal/strikes"
)

// strangersStrike is a strike in which everything that a stranger may have written is hostile.
func strangersStrike() strikes.Strike {
	at := time.Unix(1_800_000_000, 0)
	return strikes.Strike{ID: uuid.New(), State: "open", Counts: true, OpenedAt: at, LastEvidenceAt: at, Spread: strangersSpread(), Evidence: []strikes.Evidence{{
		Call: call.NewID(), RecordedAt: at, Source: netip.MustParseAddr("192.0.2.7"), Network: netip.MustParsePrefix("192.0.2.0/24"), Origin: call.External,
		Payer: common.HexToAddress("0xaa"), Method: "GET", Path: "/" + strangers, Status: 500, Latency: time.Second, Reason: call.Upstream5xx, Detail: strangers,
		Error: strangers, Said: call.Said{ContentType: strangers, Snippet: strangers, Bytes: 70_000, SHA256: make([]byte, 32)},
	}}}
}

func strangersSpread() strikes.Spread {
	at := time.Unix(1_800_000_000, 0)
	return strikes.Spread{Evidence: 3, First: at.Add(-28 * time.Minute), Last: at, Sources: 1, LargestSource: netip.MustParsePrefix("192.0.2.0/24"), FromLargest: 3, Addresses: 1,
		Payers: 2, LargestPayer: common.HexToAddress("0xaa"), ByLargest: 2}
}

func testPolicy() strikes.Policy {
	return strikes.Policy{Limit: 3, Window: 24 * time.Hour, Sources: 2}
}

func strangersSummary() strikes.Summary {
	return testPolicy().Summarize(strikes.Facts{Slug: "evil", Name: strangers, State: string(catalog.Listed), Sells: true, Open: 2, Spread: strangersSpread(),
		Clears: strikes.Clears{Times: 6, Trials: 6, Sources: 1, Addresses: 1}})
}

// B145: what services answered, callers asked for, providers appealed with and admins wrote is shown to an admin, and does nothing.
func TestAdminPages_ShowWhatStrangersWroteAndRunNothing(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	st := strangersStrike()
	appeal := delivery.Appeal{ID: uuid.New(), At: st.OpenedAt, By: catalog.Author{Name: strangers}, Text: strangers + "\n" + strangers,
		Answer: &delivery.Answered{Action: audit.Uphold, By: strangers, Reason: strangers}}
	entry := audit.Entry{Action: audit.Action(strangers), By: strangers, Subject: audit.Subject{Kind: audit.KindStrike, Name: strangers}, Reason: strangers,
		Before: json.RawMessage(`{"state":"<script>alert(1)</script>"}`), After: json.RawMessage(`{"state":"\u202e","<script>":{"<script>":1}}`)}
	f := s.frame()
	f.Admin = &adminBar{Form: "form", At: "strikes", Ends: momentOf(st.OpenedAt)}
	page := casePage{frame: f, Slug: "evil", Name: plain(strangers), By: plain(strangers), Reason: plain(strangers), Conflict: plain(strangers),
		Appeals: []appealOnPage{appealOnPageOf(appeal)}, Audit: []auditOnPage{auditOnPageOf(entry)}}
	row := s.queueRowOf(strangersSummary())
	page.Summary = &row
	shown := strikeOnPageOf(st)
	shown.add(told{decisions: map[string]audit.Entry{st.ID.String(): entry}, ofStrikes: map[uuid.UUID][]delivery.Appeal{st.ID: {appeal}}}, st)
	shown.Forms = page.readied(strikeForms(st, 2, testPolicy()), decisionAsked{action: actVoid, strike: st.ID.String(), reason: strangers, notDone: notDone{problem: plain(strangers)}})
	page.Strikes = []strikeOnPage{shown}
	page.Measured = measuredOnPageOf([]delivery.Measured{{Window: 24 * time.Hour, Endpoints: []delivery.MeasuredEndpoint{{Method: "GET", Path: strangers,
		Traffic: []delivery.Traffic{{Class: delivery.ClassCounting}}}}}}, st.OpenedAt)
	for name, text := range map[string]string{
		"one service": render(t, adminStrikeTemplate, page),
		"queue":       render(t, adminStrikesTemplate, strikesPage{frame: f, Rows: []queueRow{row}}),
		"audit":       render(t, adminAuditTemplate, auditPage{frame: f, Service: plain(strangers), Rows: []auditOnPage{auditOnPageOf(entry)}}),
		"overview":    render(t, adminHomeTemplate, overviewPage{frame: f, Waiting: []waitingOnPage{{Slug: "evil", Name: plain(strangers)}}}),
		"services":    render(t, adminServicesTemplate, adminServicesPage{frame: f, Rows: []adminServiceRow{{Slug: "evil", Name: plain(strangers), Reason: plain(strangers), Problems: []string{plain(strangers)}}}}),
		"sign in":     render(t, signInTemplate, signInPage{frame: s.frame(), Next: safeNext("/admin/strikes?x=" + strangers), Problem: plain(strangers)}),
	} {
		for _, bad := range []string{"<script", `"'onfocus`, ` onfocus="`, ` autofocus="`, "\u202e", `"javascript:`} {
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %q:\n%s", name, bad, text)
			}
		}
		if !strings.Contains(text, "alert(1)") {
			t.Errorf("%s does not show the text: the test shows nothing", name)
		}
	}
}

func TestQueueRow_SaysOverWhomEvidenceIsSpreadAndWhatComesNext(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	row := s.queueRowOf(strangersSummary())
	var facts []string
	for _, f := range row.Facts {
		facts = append(facts, f.Name+": "+f.Value)
	}
	want := []string{
		"Failed calls: 3, all paid, over 28 minutes, the last at 2027-01-15 08:00:00 UTC",
		"Networks: 1; 3 of 3 (100 %) from 192.0.2.0/24",
		"Payers: 2; 2 of 3 (66.6 %) by 0x00000000000000000000000000000000000000AA",
	}
	if strings.Join(facts, "\n") != strings.Join(want, "\n") {
		t.Errorf("facts:\n%s\nwant:\n%s", strings.Join(facts, "\n"), strings.Join(want, "\n"))
	}
	if row.Count != "2 of 3" || !row.Concentrated || row.Words != "3 of 3 from one address in 28 min" || !strings.Contains(row.NextFailure, "delists it if it comes from another network") ||
		row.Clears != "Cleared 6 times by trial calls from one address" {
		t.Errorf("%+v", row)
	}
	if page := render(t, adminStrikesTemplate, strikesPage{frame: s.frame(), Rows: []queueRow{row}}); !strings.Contains(page, "⚠ concentrated") {
		t.Error("evidence of one source is not marked in words")
	}
	if trials := spreadFacts(strikes.Spread{Evidence: 3, Trials: 1, LargestSource: netip.MustParsePrefix("192.0.2.0/24")}); trials[2].Value != "none" || !strings.Contains(trials[0].Value, "1 of them trial calls") {
		t.Errorf("%+v", trials)
	}
}

// Whoever decides reads first what that will do, and is offered nothing that cannot be done.
func TestForms_OfferWhatCanBeDecidedAndSayWhatItDoes(t *testing.T) {
	t.Parallel()
	names := func(forms []reviewForm) string {
		var out []string
		for _, f := range forms {
			out = append(out, string(f.Action))
			if f.Does == "" || f.Title == "" || f.Button == "" {
				t.Errorf("%s says nothing: %+v", f.Action, f)
			}
		}
		return strings.Join(out, " ")
	}
	for state, want := range map[catalog.State]string{catalog.Listed: "suspend", catalog.Delisted: "relist", catalog.Held: "relist suspend", catalog.Suspended: "relist", catalog.Retired: ""} {
		if got := names(serviceForms(state, 2, testPolicy())); got != want {
			t.Errorf("a service that is %s: %q, want %q", state, got, want)
		}
	}
	for state, want := range map[strikes.State]string{strikes.Open: "void uphold", strikes.Cleared: "void", strikes.Voided: "", strikes.Archived: ""} {
		if got := names(strikeForms(strikes.Strike{State: string(state), Counts: state == strikes.Open}, 2, testPolicy())); got != want {
			t.Errorf("a strike that is %s: %q, want %q", state, got, want)
		}
	}
	if void := strikeForms(strikes.Strike{State: "open", Counts: true}, 2, testPolicy())[0]; !strings.Contains(void.Does, "1 of 3 strikes are left") {
		t.Errorf("voiding one of two: %s", void.Does)
	}
	if relist := serviceForms(catalog.Delisted, 1, testPolicy())[0]; !strings.Contains(relist.Does, "1 open strike is archived") {
		t.Errorf("relisting with one: %s", relist.Does)
	}
}

// A form about the service carries the moment of the state that its page shows: it decides about no other.
func TestForms_AboutTheServiceRestOnTheStateThatIsShown(t *testing.T) {
	t.Parallel()
	since := time.Unix(1_800_000_000, 0)
	page := casePage{frame: frame{Admin: &adminBar{}}, Since: momentOf(since)}
	waits := []delivery.Appeal{{Answer: &delivery.Answered{}}, {}}
	forms := page.readied(append(serviceForms(catalog.Held, 2, testPolicy()), answerForms(waits)...), decisionAsked{})
	if len(forms) != 3 || forms[2].Action != actLeave {
		t.Fatalf("%+v", forms)
	}
	for _, f := range forms {
		if f.Seen != timeJSON(since) {
			t.Errorf("%s rests on %q", f.Action, f.Seen)
		}
		asked := decisionAsked{action: f.Action, reason: "x", seen: f.Seen}
		if order, err := asked.order(); err != nil || !order.StateSince.Equal(since) {
			t.Errorf("%s asks for %+v, %v", f.Action, order, err)
		}
	}
	if forms := answerForms(waits[:1]); forms != nil {
		t.Errorf("where no appeal waits: %+v", forms)
	}
	if shown := render(t, adminStrikeTemplate, casePage{frame: page.frame, Since: page.Since, Forms: forms}); strings.Count(shown, `name="state_since" value="`+timeJSON(since)+`"`) != 3 {
		t.Errorf("the forms do not carry it:\n%s", shown)
	}
}

// A decision stands until an appeal that is newer than it.
func TestStrikeOnPage_IsDecidedUntilTheProviderAppeals(t *testing.T) {
	t.Parallel()
	st := strangersStrike()
	at := st.OpenedAt
	of := func(action audit.Action) told {
		return told{decisions: map[string]audit.Entry{st.ID.String(): {Action: action, At: at}}}
	}
	appealed := func(d time.Duration) []delivery.Appeal { return []delivery.Appeal{{At: at.Add(d)}} }
	before, after, whole := of(audit.Uphold), of(audit.Uphold), of(audit.Uphold)
	before.ofStrikes = map[uuid.UUID][]delivery.Appeal{st.ID: appealed(0)}
	after.ofStrikes = map[uuid.UUID][]delivery.Appeal{st.ID: appealed(time.Microsecond)}
	whole.ofService = appealed(time.Microsecond)
	for name, tt := range map[string]struct {
		told told
		want bool
	}{
		"nothing decided":                   {told{}, false},
		"upheld":                            {of(audit.Uphold), true},
		"upheld after the appeal":           {before, true},
		"upheld before the appeal":          {after, false},
		"upheld before the service appeals": {whole, false},
		"voided":                            {of(audit.Void), false},
	} {
		shown := strikeOnPageOf(st)
		shown.add(tt.told, st)
		if shown.Decided != tt.want {
			t.Errorf("%s: decided %v, want %v", name, shown.Decided, tt.want)
		}
	}
}

func TestEvidenceOnPage_SaysWhatCameBack(t *testing.T) {
	t.Parallel()
	hash := make([]byte, 32)
	for name, tt := range map[string]struct {
		e    strikes.Evidence
		want []string
	}{
		"text":             {strikes.Evidence{Status: 500, Latency: 40 * time.Millisecond, Said: call.Said{Snippet: "x", Bytes: 1, SHA256: hash}}, []string{"Status 500 in 40 ms", "1 byte came back", "of them"}},
		"more than wanted": {strikes.Evidence{Status: 500, Said: call.Said{Snippet: "x", Bytes: 70_000, Cut: true, SHA256: hash}}, []string{"More than 70,000 bytes came back", "of the first 65,536"}},
		"no text":          {strikes.Evidence{Status: 500, Said: call.Said{Bytes: 9, SHA256: hash}}, []string{"9 bytes came back, no text"}},
		"nothing":          {strikes.Evidence{Latency: 10 * time.Second, Error: "connect: refused"}, []string{"No whole answer in 10 s", "connect: refused", "Not known."}},
		"none but it":      {strikes.Evidence{Others: &strikes.Others{}}, []string{"No other service was asked."}},
		"it alone":         {strikes.Evidence{Others: &strikes.Others{Asked: 12}}, []string{"None of 12 failed."}},
		"many with it":     {strikes.Evidence{Others: &strikes.Others{Asked: 12, Failed: 9}}, []string{"9 of 12 failed."}},
		"a long path":      {strikes.Evidence{Method: "GET", Path: strings.Repeat("x", 1000)}, []string{"GET " + strings.Repeat("x", requestShownMax) + "…"}},
		"a trial":          {strikes.Evidence{Trial: true}, []string{"trial call"}},
	} {
		row := evidenceOnPageOf(tt.e)
		text := strings.Join([]string{row.Kind, row.Request, row.Answer, row.Error, row.Body, row.Hashed, row.Others}, "\n")
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", name, want, text)
			}
		}
		if (row.Body == "") != (tt.e.Said.Bytes == 0) || (row.Hash == "") != (tt.e.Said.Bytes == 0) {
			t.Errorf("%s: body %q, hash %q", name, row.Body, row.Hash)
		}
	}
}

func TestChangesOf_NamesWhatIsAnotherOneAndNothingElse(t *testing.T) {
	t.Parallel()
	got := changesOf(json.RawMessage(`{"state":"delisted","counting":3,"strikes":{"a":"open","b":"open"},"cooldown_until":"x"}`),
		json.RawMessage(`{"state":"listed","counting":2,"strikes":{"a":"voided","b":"open"}}`))
	want := []changeOnPage{{"cooldown until", "x", "none"}, {"counting", "3", "2"}, {"state", "delisted", "listed"}, {"strikes a", "open", "voided"}}
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if got := changesOf(json.RawMessage(`[]`), nil); got != nil {
		t.Errorf("what is no object changed: %+v", got)
	}
}

// What is measured stands beside what is enforced, says so, and is left out where it could not be read.
func TestMeasuredOnPage_SaysHowCallsEndedAndWhose(t *testing.T) {
	t.Parallel()
	if page := measuredOnPageOf(nil, time.Time{}); page != nil {
		t.Errorf("what was not read is shown: %+v", page)
	}
	traffic := delivery.Traffic{Class: delivery.ClassCounting, Counts: []delivery.Count{{Outcome: call.Served, Reason: call.OK, Party: call.Service, N: 1200}},
		Served: delivery.Latency{N: 1200, P50: 40 * time.Millisecond, P99: 2 * time.Second}, Since: time.Unix(1_800_000_000, 0)}
	page := measuredOnPageOf([]delivery.Measured{{Window: 24 * time.Hour, Traffic: []delivery.Traffic{traffic},
		Endpoints: []delivery.MeasuredEndpoint{{Method: "POST", Path: "/v1", Traffic: []delivery.Traffic{{Trial: true, Class: delivery.ClassOwn}}}}}, {Window: 7 * 24 * time.Hour}}, time.Unix(1_800_000_000, 0))
	if len(page.Windows) != 2 || page.Windows[0].Name != "24 hours" || page.Windows[0].N != "1,200 calls" || page.Windows[1].Name != "7 days" {
		t.Fatalf("%+v", page.Windows)
	}
	var text []string
	for _, row := range page.Windows[0].Rows {
		text = append(text, row.Name+"|"+row.N+"|"+row.Latency)
	}
	want := "Paid calls from outside|1,200|Of 1,200 served half took up to 40 ms, 99 % up to 2 s. There are more: all are counted since 2027-01-15 08:00:00 UTC.\n" +
		"served, service: ok|1,200|\nPOST /v1: trial calls of the market's own|0|"
	if strings.Join(text, "\n") != want {
		t.Errorf("%s\nwant:\n%s", strings.Join(text, "\n"), want)
	}
	for _, class := range delivery.Classes() {
		if classNames[class] == "" {
			t.Errorf("calls of class %s have no name", class)
		}
	}
}

func TestAdminPages_HaveWordsForEverythingThatIsDecidedAndKnown(t *testing.T) {
	t.Parallel()
	for _, a := range audit.Actions() {
		// No form about a service asks for the others: an outage does, the page of sources, and whoever has an account.
		ordered := slices.Contains([]audit.Action{audit.Void, audit.Uphold, audit.Relist, audit.Suspend}, a)
		if deeds[a] == "" || ordered && dones[action(a)] == "" {
			t.Errorf("%s has no words", a)
		}
	}
	for _, c := range outage.Causes() {
		if outageCauses[c] == "" {
			t.Errorf("an outage known by %s has no words", c)
		}
	}
	held := outageOnPageOf(outage.Outage{State: outage.State{Cause: outage.Services}, Failing: outage.Failing{Asked: 12, Failed: 9, Providers: 4}})
	over := outageOnPageOf(outage.Outage{Replica: uuid.New(), State: outage.State{Cause: outage.Canaries, Ended: time.Unix(1, 0)}})
	if held.State.Word != "holds now" || !strings.HasPrefix(held.What, "The whole fleet: ") || over.State.Word != "over" || !strings.HasPrefix(over.What, "Replica ") {
		t.Errorf("%+v, %+v", held, over)
	}
}

// B145: words of sources are in notices: they are shown, and lead nowhere but to our own pages and to the web.
func TestNoticeOnPage_ShowsWordsOfOthersAndLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	at := time.Unix(1_800_000_000, 0)
	n := notify.Listed{ID: uuid.New(), Kind: notify.SourceOut, Subject: strangers, RaisedAt: at,
		Outage:   notify.Outage{What: strangers, Effect: strangers, Look: "/admin/sources\n//evil.example\njavascript:alert(1)\nhttps://hosted.example/billing\n" + strangers},
		Messages: []notify.Sending{{Phase: notify.Raised, Attempts: 2, LastError: strangers, NextAt: at}}}
	f := s.frame()
	f.Admin = &adminBar{Form: "form", At: "notices", Ends: momentOf(at)}
	row := noticeOnPageOf(n)
	page := noticesPage{frame: f, Told: "You are told by mail.", Form: "form", Rows: []noticeOnPage{row}}
	text := render(t, adminNoticesTemplate, page)
	for _, want := range []string{"holds now", "2 attempts failed before", `href="/admin/sources"`, `href="https://hosted.example/billing"`, "alert(1)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not show %q:\n%s", want, text)
		}
	}
	for _, bad := range []string{"<script", `"'onfocus`, ` onfocus="`, "\u202e", `"javascript:`, `href="//`} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q:\n%s", bad, text)
		}
	}
	for _, look := range row.Looks {
		if look.Link != "" && look.Link != "/admin/sources" && look.Link != "https://hosted.example/billing" {
			t.Errorf("the page leads to %q", look.Link)
		}
	}
	for state, want := range map[string]noticeState{
		noticeOnPageOf(notify.Listed{}).State.Word:                                                                                 noticeOpen,
		noticeOnPageOf(notify.Listed{CalmSince: at}).State.Word:                                                                    noticeCalm,
		noticeOnPageOf(notify.Listed{CalmSince: at, SettledAt: at}).State.Word:                                                     noticeSettled,
		noticeOnPageOf(notify.Listed{SettledAt: at, Messages: []notify.Sending{{Phase: notify.Raised, GivenUpAt: at}}}).State.Word: noticeGivenUp,
	} {
		if state != noticeBadges[want].Word {
			t.Errorf("%s is shown as %q", want, state)
		}
	}
}
